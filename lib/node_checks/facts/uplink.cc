#include "lib/node_checks/facts/uplink.h"

#include <linux/rtnetlink.h>

#include <algorithm>
#include <vector>

#include "absl/status/status.h"
#include "lib/base/status.h"
#include "lib/ip/address.h"
#include "lib/netlink/link.h"
#include "lib/netlink/socket.h"

namespace spoke::node_checks {
namespace {

bool IsDefault(const netlink::Route& route) {
  return route.table == RT_TABLE_MAIN && route.type == RTN_UNICAST &&
         route.destination.length() == 0;
}

}  // namespace

absl::StatusOr<int32_t> UplinkOf(std::span<const netlink::Route> routes) {
  const netlink::Route* best = nullptr;
  bool is_one = true;
  for (const netlink::Route& route : routes) {
    if (!IsDefault(route) || (best != nullptr && route.metric > best->metric)) continue;
    // A route with several next hops has no device of its own.
    is_one = route.link != 0 && (best == nullptr || route.metric < best->metric ||
                                 (is_one && route.link == best->link));
    best = &route;
  }
  if (best == nullptr) return absl::NotFoundError("there is no default route");
  if (!is_one) {
    return absl::FailedPreconditionError("default routes of one metric lead to several devices");
  }
  return best->link;
}

absl::StatusOr<std::string> ReadUplink() {
  ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::Open());
  absl::StatusOr<int32_t> index = absl::NotFoundError("");
  for (const ip::Family family : {ip::Family::kV4, ip::Family::kV6}) {
    ASSIGN_OR_RETURN(const std::vector<netlink::Route> routes,
                     netlink::DumpAllRoutes(socket, family));
    index = UplinkOf(routes);
    if (!absl::IsNotFound(index.status())) break;
  }
  RETURN_IF_ERROR(index.status());
  ASSIGN_OR_RETURN(const std::vector<netlink::Link> links, netlink::DumpLinks(socket, ""));
  const auto link = std::find_if(links.begin(), links.end(),
                                 [&](const netlink::Link& one) { return one.index == *index; });
  if (link == links.end()) return absl::NotFoundError("the default route's device is gone");
  return link->name;
}

}  // namespace spoke::node_checks
