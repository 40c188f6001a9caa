#include "netagent/kernel/netlink_gateway_routes.h"

#include <linux/rtnetlink.h>

#include <vector>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/ip/prefix.h"
#include "lib/netlink/exchange.h"
#include "lib/netlink/link.h"
#include "lib/netlink/route.h"
#include "lib/netlink/rule.h"
#include "netagent/core/claims.h"

namespace spoke::netagent {
namespace {

constexpr ip::Family kFamilies[] = {ip::Family::kV4, ip::Family::kV6};

ip::Prefix Everything(ip::Family family) {
  const ip::Address any = family == ip::Family::kV4 ? ip::Address::V4(0) : ip::Address::V6(0, 0);
  return ip::Prefix::Of(any, 0).value();
}

uint32_t TableOf(uint32_t mark) { return claims::kFirstGatewayTable + mark; }

bool IsGatewayMark(uint32_t mark) {
  return mark - claims::kFirstGatewayMark < claims::kGatewayMarks;
}

netlink::Rule RuleOf(uint32_t mark, ip::Family family) {
  return {.family = family,
          .priority = claims::kGatewayPriority,
          .from = {},
          .table = TableOf(mark),
          .protocol = claims::kRouteProtocol,
          .suppress_prefix_length = {},
          .mark = netlink::PacketMark{mark, claims::kFlowMarkMask}};
}

}  // namespace

absl::StatusOr<std::unique_ptr<NetlinkGatewayRoutes>> NetlinkGatewayRoutes::Create(
    std::string nic) {
  ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::Open());
  return std::unique_ptr<NetlinkGatewayRoutes>(
      new NetlinkGatewayRoutes(std::move(socket), std::move(nic)));
}

absl::StatusOr<std::map<uint32_t, ip::Address>> NetlinkGatewayRoutes::Read() {
  std::map<uint32_t, ip::Address> ways;
  for (const ip::Family family : kFamilies) {
    ASSIGN_OR_RETURN(const std::vector<netlink::Rule> rules,
                     netlink::DumpRules(socket_, family, claims::kRouteProtocol));
    for (const netlink::Rule& rule : rules) {
      if (!rule.mark || !IsGatewayMark(rule.mark->value)) continue;
      const uint32_t mark = rule.mark->value;
      if (rule != RuleOf(mark, family)) continue;
      ASSIGN_OR_RETURN(const std::vector<netlink::Route> routes,
                       netlink::DumpRoutes(socket_, family, TableOf(mark), claims::kRouteProtocol));
      for (const netlink::Route& route : routes) {
        if (route.destination.length() == 0 && route.gateway) ways.emplace(mark, *route.gateway);
      }
    }
  }
  return ways;
}

absl::Status NetlinkGatewayRoutes::Lead(uint32_t mark, const ip::Address& gateway) {
  if (!IsGatewayMark(mark)) {
    return absl::InternalError(fmt::format("mark {} is no gateway's", mark));
  }
  ASSIGN_OR_RETURN(const auto links, netlink::DumpLinks(socket_, ""));
  int32_t nic = 0;
  for (const netlink::Link& link : links) {
    if (link.name == nic_) nic = link.index;
  }
  if (nic == 0) return absl::NotFoundError(fmt::format("there is no NIC {}", nic_));
  const ip::Family family = gateway.family();
  const ip::Family other = family == ip::Family::kV4 ? ip::Family::kV6 : ip::Family::kV4;
  // The route first: a packet that the rule takes must find it. What the mark led to in the other
  // family would otherwise be read as its gateway.
  const std::vector<netlink::Request> batch = {
      netlink::ReplaceRoute({.destination = Everything(family),
                             .table = TableOf(mark),
                             .protocol = claims::kRouteProtocol,
                             .link = nic,
                             .gateway = gateway,
                             .on_link = true}),
      netlink::AddRule(RuleOf(mark, family)),
      netlink::DeleteRule(RuleOf(mark, other)),
  };
  return netlink::SendBatch(socket_, batch).status;
}

absl::Status NetlinkGatewayRoutes::Forget(uint32_t mark) {
  std::vector<netlink::Request> batch;
  for (const ip::Family family : kFamilies) {
    batch.push_back(netlink::DeleteRule(RuleOf(mark, family)));
    batch.push_back(netlink::DeleteRoute({.destination = Everything(family),
                                          .table = TableOf(mark),
                                          .protocol = claims::kRouteProtocol}));
  }
  return netlink::SendBatch(socket_, batch).status;
}

}  // namespace spoke::netagent
