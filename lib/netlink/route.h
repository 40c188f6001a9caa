// Routes. The request functions and ParseRoute() are pure.
#pragma once

#include <linux/rtnetlink.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/ip/address.h"
#include "lib/ip/prefix.h"
#include "lib/netlink/request.h"
#include "lib/netlink/socket.h"

namespace spoke::netlink {

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

}  // namespace spoke::netlink
