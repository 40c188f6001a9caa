#include "netagent/node/netlink_node_routes.h"

#include <linux/rtnetlink.h>

#include "lib/base/status.h"
#include "lib/netlink/link.h"
#include "lib/netlink/network_layer.h"
#include "netagent/claims.h"

namespace spoke::netagent {
namespace {

NodeRoute FromKernel(const netlink::Route& route) {
  const bool forwards = route.type == RTN_UNICAST;
  return {.destination = route.destination,
          .metric = route.metric,
          .device = forwards ? static_cast<uint32_t>(route.link) : 0,
          .gateway = route.gateway,
          .ours = route.protocol == claims::kRouteProtocol};
}

// Whether the rule is neither one of the kernel's own three nor one of the agent's.
bool IsForeign(const netlink::Rule& rule) {
  return rule.protocol != claims::kRouteProtocol && rule.table != RT_TABLE_LOCAL &&
         rule.table != RT_TABLE_MAIN && rule.table != RT_TABLE_DEFAULT;
}

}  // namespace

absl::StatusOr<std::unique_ptr<NetlinkNodeRoutes>> NetlinkNodeRoutes::Create() {
  auto socket = netlink::Socket::Open();
  if (!socket.ok()) return socket.status();
  return std::unique_ptr<NetlinkNodeRoutes>(new NetlinkNodeRoutes(*std::move(socket)));
}

absl::StatusOr<NodeNetwork> NetlinkNodeRoutes::Read(const std::string& uplink) {
  NodeNetwork network{.uplink = uplink};
  const auto link = netlink::GetLink(socket_, uplink);
  if (!link.ok() && !absl::IsNotFound(link.status())) return link.status();
  if (link.ok()) {
    network.uplink_index = static_cast<uint32_t>(link->index);
    network.uplink_mtu = link->mtu;
  }
  for (const ip::Family family : {ip::Family::kV4, ip::Family::kV6}) {
    const absl::Status status = ReadFamily(family, network);
    if (!status.ok()) return base::Annotate(status, "read the node's routes");
  }
  return network;
}

absl::Status NetlinkNodeRoutes::ReadFamily(ip::Family family, NodeNetwork& network) {
  ASSIGN_OR_RETURN(const auto addresses, netlink::DumpAddresses(socket_, family, 0));
  for (const netlink::LinkAddress& own : addresses) {
    network.addresses.push_back({own.address, own.prefix_length});
  }
  ASSIGN_OR_RETURN(const auto routes,
                   netlink::DumpRoutes(socket_, family, RT_TABLE_MAIN, RTPROT_UNSPEC));
  for (const netlink::Route& route : routes) network.routes.push_back(FromKernel(route));
  ASSIGN_OR_RETURN(const auto rules, netlink::DumpRules(socket_, family, RTPROT_UNSPEC));
  for (const netlink::Rule& rule : rules) {
    if (IsForeign(rule)) network.foreign_rules = true;
  }
  return absl::OkStatus();
}

}  // namespace spoke::netagent
