// KernelLinks: a way out of its own for each NIC beside the node's first.
#include <linux/rtnetlink.h>

#include <optional>
#include <vector>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/ip/prefix.h"
#include "lib/netlink/link.h"
#include "lib/netlink/network_layer.h"
#include "lib/netlink/socket.h"
#include "netagent/claims.h"
#include "netagent/links/kernel_links.h"

namespace spoke::netagent {
namespace {

absl::StatusOr<netlink::Link> FindNic(netlink::Socket& socket, const ip::MacAddress& mac) {
  const auto links = netlink::DumpLinks(socket, "");
  if (!links.ok()) return links.status();
  for (const netlink::Link& link : *links) {
    // A virtual function has the MAC of the device it is a part of (Azure's accelerated
    // networking).
    if (link.mac == mac && link.master == 0 && !IsHostLinkName(link.name)) return link;
  }
  return absl::NotFoundError(fmt::format("no NIC has the MAC {}", mac.ToString()));
}

// Finds the default route out of the NIC for its table; nothing when none is known.
absl::StatusOr<std::optional<netlink::Route>> FindWayOut(netlink::Socket& socket,
                                                         const netlink::Link& nic,
                                                         ip::Family family) {
  const auto routes = netlink::DumpRoutes(socket, family, RT_TABLE_MAIN, RTPROT_UNSPEC);
  if (!routes.ok()) return routes.status();
  std::optional<netlink::Route> best;
  for (const netlink::Route& route : *routes) {
    if (route.link != nic.index || route.destination.length() != 0 || !route.gateway) continue;
    if (!best || route.metric < best->metric) best = route;
  }
  std::optional<ip::Address> gateway = best ? best->gateway : std::nullopt;
  if (!gateway && family == ip::Family::kV4) {
    const auto addresses = netlink::DumpAddresses(socket, family, nic.index);
    if (!addresses.ok()) return addresses.status();
    for (const netlink::LinkAddress& own : *addresses) {
      const auto subnet = ip::Prefix::Of(own.address, own.prefix_length);
      // A subnet up to /30 has a first host that is not its only one.
      if (!subnet.ok() || own.prefix_length > 30 || own.scope != RT_SCOPE_UNIVERSE) continue;
      const ip::Address first = ip::Advance(subnet->base(), 1);
      if (!gateway && first != own.address) gateway = first;
    }
  }
  if (!gateway) return std::nullopt;
  const ip::Address any = family == ip::Family::kV4 ? ip::Address::V4(0) : ip::Address::V6(0, 0);
  return netlink::Route{.destination = ip::Prefix::Of(any, 0).value(),
                        .table = claims::kFirstNicTable + static_cast<uint32_t>(nic.index),
                        .protocol = claims::kRouteProtocol,
                        .link = nic.index,
                        .gateway = gateway,
                        .on_link = family == ip::Family::kV4};
}

// Makes whatever the main table has except its default routes go before all source rules.
netlink::Request AddMainFirst(ip::Family family) {
  return netlink::AddRule({.family = family,
                           .priority = claims::kMainFirstPriority,
                           .from = {},
                           .table = RT_TABLE_MAIN,
                           .protocol = claims::kRouteProtocol,
                           .suppress_prefix_length = 0});
}

absl::StatusOr<uint32_t> FillTable(netlink::Socket& socket, const ip::MacAddress& nic,
                                   bool has_ipv6) {
  const auto link = FindNic(socket, nic);
  if (!link.ok()) return link.status();
  if (static_cast<uint32_t>(link->index) >= claims::kNicTables) {
    return absl::InternalError(
        fmt::format("NIC {} has index {}, for which there is no table", link->name, link->index));
  }
  std::vector<netlink::Request> batch;
  for (const ip::Family family : {ip::Family::kV4, ip::Family::kV6}) {
    if (family == ip::Family::kV6 && !has_ipv6) continue;
    const auto way_out = FindWayOut(socket, *link, family);
    if (!way_out.ok()) return way_out.status();
    if (!*way_out) continue;
    batch.push_back(netlink::ReplaceRoute(**way_out));
    batch.push_back(AddMainFirst(family));
  }
  if (batch.empty()) {
    return absl::FailedPreconditionError(
        fmt::format("no gateway is known behind NIC {} ({})", link->name, nic.ToString()));
  }
  const absl::Status status = netlink::SendBatch(socket, batch).status;
  if (!status.ok()) return status;
  return claims::kFirstNicTable + static_cast<uint32_t>(link->index);
}

}  // namespace

absl::StatusOr<uint32_t> KernelLinks::SetNicTable(const ip::MacAddress& nic) {
  RETURN_IF_ERROR(Reach(settings_.fault_point, "nic.table"));
  auto table = FillTable(socket_, nic, has_ipv6_);
  if (table.ok()) return table;
  return Narrow(base::Annotate(table.status(), "NIC " + nic.ToString()),
                {absl::StatusCode::kNotFound, absl::StatusCode::kFailedPrecondition,
                 absl::StatusCode::kUnavailable});
}

}  // namespace spoke::netagent
