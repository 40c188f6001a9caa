// What a namespace has at the network layer: addresses of devices, neighbours, routes and rules.
// The functions that make a request or parse a payload are pure.
#pragma once

#include <linux/rtnetlink.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/ip/address.h"
#include "lib/ip/prefix.h"
#include "lib/netlink/message.h"
#include "lib/netlink/socket.h"

namespace spoke::netlink {

struct LinkAddress {
  int32_t link = 0;     // The device's index.
  ip::Address address;  // The device's own address; never the far end's of a point-to-point link.
  int prefix_length = 0;
  uint8_t scope = 0;   // The scope, RT_SCOPE_*; 0 is global.
  uint32_t flags = 0;  // The flags, IFA_F_*.

  bool operator==(const LinkAddress&) const = default;
};

// Reads the payload of an RTM_NEWADDR message. Errors: kDataLoss (cut short, a length that cannot
// be, no address, or a family that is neither IPv4 nor IPv6).
absl::StatusOr<LinkAddress> ParseAddress(std::span<const uint8_t> payload);

// Puts `address` alone (/32 or /128) on the device. There is no duplicate address detection for
// IPv6: the address can be used at once. Refused with kAlreadyExists when it is there.
Request AddAddress(int32_t link, const ip::Address& address, uint8_t scope = 0);

// Returns the addresses of one device, or of all with index 0. Errors: as Dump().
absl::StatusOr<std::vector<LinkAddress>> DumpAddresses(Socket& socket, ip::Family family,
                                                       int32_t link);

struct Neighbour {
  int32_t link = 0;  // The device's index.
  ip::Address address;
  std::optional<ip::MacAddress> mac;  // The MAC; nullopt while it is being asked for.
  uint16_t state = 0;                 // The state, NUD_* of linux/neighbour.h.

  bool operator==(const Neighbour&) const = default;
};

// Reads the payload of an RTM_NEWNEIGH message. Errors: kDataLoss (cut short, a length that cannot
// be, no address, or a family that is neither IPv4 nor IPv6).
absl::StatusOr<Neighbour> ParseNeighbour(std::span<const uint8_t> payload);

// Puts a permanent entry in place of whatever the kernel has for the address: never asked for,
// never timed out, and nothing on the link can change it.
Request SetPermanentNeighbour(int32_t link, const ip::Address& address, const ip::MacAddress& mac);

// Deletes an entry. One that is not there is no error.
Request DeleteNeighbour(int32_t link, const ip::Address& address);

// Returns the family's neighbours on one device, or on all with index 0. Errors: as Dump().
absl::StatusOr<std::vector<Neighbour>> DumpNeighbours(Socket& socket, ip::Family family,
                                                      int32_t link);

// A tunnel that packets of a route are put into (lwtunnel; ip-route(8), ENCAP_IP). The route's
// device is one that takes its far end from the route.
struct Encapsulation {
  ip::Address remote;  // The far end, of either family.
  uint32_t id = 0;     // The network identifier of VXLAN.

  bool operator==(const Encapsulation&) const = default;
};

// A route with at most one next hop. The constants are those of linux/rtnetlink.h.
struct Route {
  ip::Prefix destination;
  uint32_t table = RT_TABLE_MAIN;
  uint8_t protocol = RTPROT_UNSPEC;  // The program that added it.
  uint8_t type = RTN_UNICAST;
  uint8_t scope = RT_SCOPE_UNIVERSE;   // The scope, for IPv4 only; the kernel ignores it for IPv6.
  int32_t link = 0;                    // The index of the device; 0: none.
  std::optional<ip::Address> gateway;  // The gateway, of the destination's family.
  uint32_t metric = 0;                 // The lower metric wins. IPv6 makes 1024 of 0.
  // Whether the gateway is on the link, whatever the kernel's routes to it say.
  bool on_link = false;
  std::optional<Encapsulation> encapsulation = std::nullopt;
  uint32_t mtu = 0;  // The MTU in bytes, also for what is forwarded; 0: the device's.

  bool operator==(const Route&) const = default;
};

// Reads the payload of an RTM_NEWROUTE message. A route with several next hops has neither link nor
// gateway here. Errors: kDataLoss (cut short, a length that cannot be, or a family that is neither
// IPv4 nor IPv6).
absl::StatusOr<Route> ParseRoute(std::span<const uint8_t> payload);

// Adds the route. Refused with kAlreadyExists when the table has a route of that destination and
// metric.
Request AddRoute(const Route& route);

// Adds the route, or puts it in the place of the one of that destination, table and metric.
Request ReplaceRoute(const Route& route);

// Removes the first route that is like `route` in all that is set. One that is not there is no
// error.
Request DeleteRoute(const Route& route);

// Returns the family's routes that `protocol` added to `table`, without cached ones. Errors: as
// Dump().
absl::StatusOr<std::vector<Route>> DumpRoutes(Socket& socket, ip::Family family, uint32_t table,
                                              uint8_t protocol);
// Returns all of the family's routes in all tables, without cached ones.
absl::StatusOr<std::vector<Route>> DumpAllRoutes(Socket& socket, ip::Family family);

// The packets whose mark is `value` under `mask`.
struct PacketMark {
  uint32_t value = 0;
  uint32_t mask = 0xFFFF'FFFF;

  bool operator==(const PacketMark&) const = default;
};

// A rule that leads into a table. Those that select by anything but source and mark are not told
// apart.
struct Rule {
  ip::Family family = ip::Family::kV4;
  uint32_t priority = 0;           // The lower priority comes first.
  std::optional<ip::Prefix> from;  // The source, of `family`; nullopt: any.
  uint32_t table = RT_TABLE_MAIN;
  uint8_t protocol = RTPROT_UNSPEC;  // The program that added it.
  // The length of a prefix: what the table has only by one of this length or less does not count.
  // 0: no default route.
  std::optional<uint32_t> suppress_prefix_length;
  std::optional<PacketMark> mark = std::nullopt;  // The mark; nullopt: any.

  bool operator==(const Rule&) const = default;
};

// Reads the payload of an RTM_NEWRULE message. Errors: kDataLoss (cut short, a length that cannot
// be, or a family that is neither IPv4 nor IPv6).
absl::StatusOr<Rule> ParseRule(std::span<const uint8_t> payload);

// Adds a rule. One that is there already is no error.
Request AddRule(const Rule& rule);
// Deletes a rule. One that is not there is no error.
Request DeleteRule(const Rule& rule);

// Returns the family's rules that `protocol` added; RTPROT_UNSPEC: all that lead into a table.
// Errors: as Dump().
absl::StatusOr<std::vector<Rule>> DumpRules(Socket& socket, ip::Family family, uint8_t protocol);

}  // namespace spoke::netlink
