// What the kernel is to hold of a pod's link, what it holds, and the operations that turn the one
// into the other. Pure.
//
// There is one plan for every verb: ADD applies the plan of a link that is not there, CHECK expects
// it to be empty, repair applies what it finds missing, and DEL plans for no link at all.
//
// Later plugins of a chain may add to a pod's link and change its MAC and MTU (CNI spec 1.1.0,
// "CHECK"): only what is missing or leads elsewhere is planned for.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ip/address.h"
#include "lib/ip/prefix.h"
#include "netagent/links/attach_plan.h"

namespace spoke::netagent {

// A setting of the node's end of a link.
struct HostLinkSetting {
  uint16_t number = 0;    // IPV4_DEVCONF_* of linux/ip.h, which link_requests.cc compares it with.
  std::string_view name;  // The name below net.ipv4.conf.LINK.
  uint32_t value = 0;
};

inline constexpr std::array<HostLinkSetting, 8> kHostLinkSettings = {{
    {1, "forwarding", 1},
    // The filter is strict: what the pod sends from an address not routed to it is dropped.
    {8, "rp_filter", 1},
    // The node speaks for nobody on this link, and learns no routes or neighbours from a pod.
    {3, "proxy_arp", 0},
    {21, "arp_accept", 0},
    // The node answers no question either: the gateway's neighbour entry in the pod is permanent.
    {19, "arp_ignore", 8},
    {4, "accept_redirects", 0},
    {6, "send_redirects", 0},
    {9, "accept_source_route", 0},
}};

// The host link gets no IPv6 link-local address (IN6_ADDR_GEN_MODE_NONE): nobody speaks to it, and
// its routes would make each further link slower to bring up (the kernel walks all links').
inline constexpr uint8_t kHostLinkAddressGeneration = 1;

// A setting of IPv6 of the node's end of a link. rtnetlink tells these but cannot change them: they
// are written to the link's files below /proc/sys, and so are a part of their own.
struct Ipv6Setting {
  std::string_view name;  // The name below net.ipv6.conf.LINK.
  uint32_t value = 0;
};

// Returns the setting by which the node takes no router advertisement from the pod: `accept_ra` 0
// for one with an IPv6 address. The host link of any other pod has no IPv6 at all (`disable_ipv6`
// 1): its multicast route, too, would make each further link slower to bring up.
Ipv6Setting RouterSettingOf(const AttachSpec& spec);

// A neighbour entry that stays until somebody removes it.
struct PermanentNeighbour {
  ip::Address address;
  ip::MacAddress mac;

  bool operator==(const PermanentNeighbour&) const = default;
};

// The node's end, and what of ours leads to it. A value as constructed has no link.
struct HostSide {
  bool exists = false;
  int32_t index = 0;
  // The number that the node's namespace has for the pod's; nullopt: it has none, as where the
  // pod's end is in the node's own.
  std::optional<int32_t> peer_netns;
  bool up = false;
  ip::MacAddress mac;
  uint32_t mtu = 0;  // Bytes.
  // Values by IPV4_DEVCONF_* number; nothing at 0. The kernel has no setting beyond the end.
  std::vector<uint32_t> settings;
  std::optional<uint8_t> address_generation;  // IN6_ADDR_GEN_MODE_*; nullopt: the link has no IPv6.
  // The settings net.ipv6.conf.LINK.accept_ra and .disable_ipv6; nullopt: the link has no IPv6.
  std::optional<uint32_t> accept_ra;
  std::optional<uint32_t> disable_ipv6;
  std::vector<PermanentNeighbour> neighbours;
  std::vector<SourceTable> rules;       // Our rules for addresses that lead here.
  std::vector<ip::Address> routes;      // Our routes in the main table, each to one address.
  std::optional<units::BitRate> limit;  // The token bucket's at its root; nullopt: there is none.

  bool operator==(const HostSide&) const = default;
};

struct PodRoute {
  ip::Prefix destination;
  std::optional<ip::Address> gateway;
  uint32_t table = 0;

  bool operator==(const PodRoute&) const = default;
};

// A rule in a pod: "What comes from `source` looks into `table`."
struct PodSourceRule {
  ip::Prefix source;
  uint32_t table = 0;

  bool operator==(const PodSourceRule&) const = default;
};

// The pod's end: the peer of the host link, whatever it is called.
struct PodSide {
  std::string name;
  std::string impostor;  // The kind of another link that has the name the peer should have.
  bool up = false;
  ip::MacAddress mac;
  uint32_t mtu = 0;  // Bytes.
  std::vector<ip::Address> addresses;
  std::vector<PermanentNeighbour> neighbours;
  std::vector<PodRoute> routes;  // The routes by this link, in all tables.
  std::vector<PodSourceRule> rules;

  bool operator==(const PodSide&) const = default;
};

// A link as it was observed. A value as constructed has no link.
struct ObservedLink {
  HostSide host;
  std::optional<PodSide> pod = std::nullopt;  // nullopt: nobody has looked into the pod.
};

// The parts that an operation makes or removes.
enum class Part {
  kHostLink,  // The pair of devices itself.
  kHostSetting,
  kHostRouters,  // RouterSettingOf().
  kHostMac,
  kHostMtu,
  kIngressLimit,
  kHostUp,
  kHostNeighbour,
  kHostRule,
  kHostRoute,
  kPodLink,
  kPodUp,
  kPodAddress,
  kPodNeighbour,
  kPodRoute,
  kPodRule,
};
inline constexpr Part kLastPart = Part::kPodRule;

// Returns the part's name for logs and metrics, such as "host_route".
std::string_view NameOf(Part part);
// Whether the pod's namespace is needed to put the part right.
bool IsInPod(Part part);

// Makes or, where the spec is for no link, removes one part of a link. The spec says what the part
// is to be, except what later plugins may have changed and what only the plan knows.
struct LinkOperation {
  Part part = Part::kHostLink;
  std::optional<ip::Address> address = std::nullopt;  // The pod's, where the part is about one.
  ip::MacAddress mac = {};                            // The entry's, for kHostNeighbour.
  uint32_t mtu = 0;                                   // Bytes, for kHostMtu.
  uint32_t table = 0;                                 // The table that kHostRule leads into.
  // What was observed instead, for people: "route to 10.1.0.5 is gone". It is empty for what only
  // follows from another operation: all that goes with a link that has to be made.
  std::string found = {};

  bool operator==(const LinkOperation&) const = default;
};
using LinkOperations = std::vector<LinkOperation>;

inline constexpr uint32_t kMainTable = 254;  // RT_TABLE_MAIN of linux/rtnetlink.h.

// The routes that the pod is to have for what comes from `address`, one of the spec's, in the order
// of making them. Those of an interface after its container's first are in the main table, with a
// worse metric, and in PodTableOf().
std::vector<PodRoute> PodRoutesOf(const AttachSpec& spec, const ip::Address& address);
uint32_t PodTableOf(const AttachSpec& spec);

// A token bucket: as much as `burst` goes at once, as much as `limit` waits, the rest is dropped.
// Burst and limit fit 32 bits, which is what the kernel has for them.
struct LinkShaping {
  units::ByteRate rate;
  units::ByteCount burst;
  units::ByteCount limit;

  bool operator==(const LinkShaping&) const = default;
};

// Plans one direction of a link with `mtu`. A `rate` of zero: nothing is returned; a `burst` of
// zero: none was asked for. Runtimes pass bursts on that stand for "whatever" (gigabits), with
// which nothing would be limited for seconds, so:
//   - the burst is what the rate gives in a millisecond, or 16 KiB where that is more, so that
//     segmentation offload still pays; less when less is requested; but never less than one packet,
//     since then none would pass;
//   - the queue is what the rate gives in 50 ms, so that the last packet of it is not late by more;
//     but never less than the burst, or than 8 packets.
std::optional<LinkShaping> PlanLinkShaping(units::BitRate rate, units::BitCount burst,
                                           uint32_t mtu);

// The rate that the host link's token bucket should have, as PlanLinkShaping() makes it of what was
// asked for; nullopt: not limited.
std::optional<units::BitRate> IngressRateOf(const AttachSpec& spec);

// The operations that turn `observed` into what `spec` says, in the order in which the kernel needs
// them on either side of the link. Idempotent: once they are applied, planning again gives none,
// except for kPodLink, a link that bears another name in the pod, which only the pod can put right.
//
// If there is no host link, the whole link is made. Nothing is planned for a pod that nobody has
// looked into; which MAC a neighbour entry should have and how long the pod's packets are is then
// not known, and not judged. A spec without addresses (NoLink()) is one for no link: its plan
// removes what leads to it, and the link, observed or not.
LinkOperations PlanLink(const AttachSpec& spec, const ObservedLink& observed);

// Returns the spec by which the link of that name is taken down.
AttachSpec NoLink(std::string host_link);

}  // namespace spoke::netagent
