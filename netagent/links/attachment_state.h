// What the kernel holds of one attachment, and how that differs from what it should hold. Pure.
//
// Later plugins of a chain may add to a pod's link and change its MAC and MTU (CNI spec 1.1.0,
// "CHECK"): only what is missing or leads elsewhere is a difference, and MAC and MTU are held
// against what the caller expects, if anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ip/address.h"
#include "lib/ip/prefix.h"
#include "netagent/links/attach_plan.h"

namespace spoke::netagent {

// A neighbour entry that stays until somebody removes it.
struct PermanentNeighbour {
  ip::Address address;
  ip::MacAddress mac;

  bool operator==(const PermanentNeighbour&) const = default;
};

// The node's end, and what of ours leads to it. As constructed: there is none.
struct HostSide {
  bool exists = false;
  int32_t index = 0;
  bool up = false;
  ip::MacAddress mac;
  uint32_t mtu = 0;  // Bytes.
  // By IPV4_DEVCONF_* number; nothing at 0. Shorter than a number: the kernel has no such setting.
  std::vector<uint32_t> settings;
  std::optional<uint8_t> address_generation;  // IN6_ADDR_GEN_MODE_*; nullopt: the link has no IPv6.
  std::vector<PermanentNeighbour> neighbours;
  std::vector<SourceTable> rules;     // Ours, for addresses that lead here.
  std::vector<ip::Address> routes;    // Ours, in the main table, each to one address.
  std::optional<uint64_t> limit_bps;  // Of the token bucket at its root; nullopt: there is none.

  bool operator==(const HostSide&) const = default;
};

struct PodRoute {
  ip::Prefix destination;
  std::optional<ip::Address> gateway;
  uint32_t table = 0;

  bool operator==(const PodRoute&) const = default;
};

// "What comes from `source` looks into `table`."
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
  std::vector<PodRoute> routes;  // By this link, of all tables.
  std::vector<PodSourceRule> rules;

  bool operator==(const PodSide&) const = default;
};

// What can differ.
enum class Part {
  kHostLink,
  kHostUp,
  kHostMac,
  kHostMtu,
  kHostSetting,
  kHostNeighbour,
  kHostRule,
  kHostRoute,
  kIngressLimit,
  kPodLink,
  kPodUp,
  kPodMac,
  kPodMtu,
  kPodAddress,
  kPodNeighbour,
  kPodRoute,
  kPodRule,
};
inline constexpr Part kLastPart = Part::kPodRule;

// "host_route": for logs and metrics.
std::string_view NameOf(Part part);
// Whether to put it right takes the pod's namespace.
bool IsInPod(Part part);
// Whether it can be put right at all: a link that is gone cannot, nor one that bears another name;
// and a MAC or an MTU that somebody expects is not ours to set.
bool IsMendable(Part part);

struct Difference {
  Part part = Part::kHostLink;
  std::string text;                                   // For people: "route to 10.1.0.5 is gone".
  std::optional<ip::Address> address = std::nullopt;  // Of the attachment, where it is about one.

  bool operator==(const Difference&) const = default;
};

// What somebody has been told of the pod's end.
struct PodExpectation {
  std::optional<ip::MacAddress> mac = std::nullopt;
  uint32_t mtu = 0;  // Bytes; 0: nothing.
};

// The rate that the host link's token bucket should have, in bits a second, as links/link_shaping.h
// makes it of what was asked for; nullopt: not limited.
std::optional<uint64_t> IngressRateOf(const AttachSpec& spec);

// In the order in which they are to be mended. Without `pod` only the node's side is looked at;
// which MAC a neighbour entry should have and how long the pod's packets are is then not known, and
// not judged.
std::vector<Difference> Compare(const AttachSpec& spec, const HostSide& host,
                                const std::optional<PodSide>& pod,
                                const PodExpectation& expected = {});

// What the two sides are when the attachment has just been built: Compare() finds nothing.
HostSide BuiltHostSide(const AttachSpec& spec);
PodSide BuiltPodSide(const AttachSpec& spec);

}  // namespace spoke::netagent
