#include "lib/node_checks/facts/network_facts.h"

#include <linux/neighbour.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/base/status.h"
#include "lib/netlink/link.h"
#include "lib/netlink/network_layer.h"
#include "lib/netlink/socket.h"
#include "lib/nft/firewall_dump.h"
#include "lib/node_checks/facts/legacy_filter.h"
#include "lib/node_checks/facts/uplink.h"

namespace spoke::node_checks {
namespace {

absl::Status ReadAddresses(netlink::Socket& socket, int32_t link, NicFacts& nic) {
  ASSIGN_OR_RETURN(const auto v4, netlink::DumpAddresses(socket, ip::Family::kV4, link));
  if (!v4.empty()) nic.v4_length = v4.front().prefix_length;
  ASSIGN_OR_RETURN(const auto v6, netlink::DumpAddresses(socket, ip::Family::kV6, link));
  for (const netlink::LinkAddress& address : v6) {
    nic.has_v6 = nic.has_v6 || address.scope == RT_SCOPE_UNIVERSE;
  }
  return absl::OkStatus();
}

// Returns the default routes of the main table that lead somewhere.
absl::StatusOr<std::vector<netlink::Route>> DefaultRoutes(netlink::Socket& socket,
                                                          ip::Family family) {
  ASSIGN_OR_RETURN(std::vector<netlink::Route> routes, netlink::DumpAllRoutes(socket, family));
  std::erase_if(routes, [](const netlink::Route& route) {
    return route.table != RT_TABLE_MAIN || route.type != RTN_UNICAST ||
           route.destination.length() != 0;
  });
  return routes;
}

absl::Status ReadGateways(netlink::Socket& socket, int32_t link, NodeFacts& facts) {
  for (const ip::Family family : {ip::Family::kV4, ip::Family::kV6}) {
    ASSIGN_OR_RETURN(const auto routes, DefaultRoutes(socket, family));
    ASSIGN_OR_RETURN(const auto neighbours, netlink::DumpNeighbours(socket, family, link));
    for (const netlink::Route& route : routes) {
      if (route.link != link || !route.gateway) continue;
      const bool silent = std::any_of(
          neighbours.begin(), neighbours.end(), [&](const netlink::Neighbour& neighbour) {
            return neighbour.address == *route.gateway && (neighbour.state & NUD_FAILED) != 0;
          });
      facts.gateways.push_back({.address = route.gateway->ToString(), .silent = silent});
    }
  }
  return absl::OkStatus();
}

absl::Status TryReadLinks(NodeFacts& facts) {
  ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::Open());
  ASSIGN_OR_RETURN(const auto links, netlink::DumpLinks(socket, ""));
  for (const netlink::Link& link : links) {
    facts.links.push_back({link.name, link.kind, link.up, link.mtu});
    if (link.name != facts.settings.nic) continue;
    facts.nic = NicFacts{.link = facts.links.back()};
    RETURN_IF_ERROR(ReadAddresses(socket, link.index, *facts.nic));
    RETURN_IF_ERROR(ReadGateways(socket, link.index, facts));
  }
  return absl::OkStatus();
}

absl::Status TryReadNftables(NodeFacts& facts) {
  ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::Open(netlink::Protocol::kNetfilter));
  auto chains = nft::ReadForwardChains(socket);
  // The subsystem is not there at all, and so neither are rules.
  if (absl::IsInvalidArgument(chains.status()) || absl::IsUnimplemented(chains.status())) {
    return absl::OkStatus();
  }
  if (!chains.ok()) return base::Annotate(chains.status(), "nf_tables");
  facts.chains = *std::move(chains);
  return absl::OkStatus();
}

}  // namespace

void ReadLinks(NodeFacts& facts) { facts.links_status = TryReadLinks(facts); }

absl::StatusOr<std::string> ReadUplink() {
  ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::Open());
  std::vector<DefaultRoute> routes;
  for (const ip::Family family : {ip::Family::kV4, ip::Family::kV6}) {
    if (!routes.empty()) break;
    ASSIGN_OR_RETURN(const auto of_family, DefaultRoutes(socket, family));
    for (const netlink::Route& route : of_family) routes.push_back({route.link, route.metric});
  }
  ASSIGN_OR_RETURN(const int32_t index, ChooseUplink(routes));
  ASSIGN_OR_RETURN(const auto links, netlink::DumpLinks(socket, ""));
  for (const netlink::Link& link : links) {
    if (link.index == index) return link.name;
  }
  return absl::NotFoundError("the default route's device is gone");
}

void ReadFirewall(const std::string& proc, NodeFacts& facts) {
  facts.firewall_status = TryReadNftables(facts);
  auto legacy = ReadLegacyFilter(proc);
  if (!legacy.ok()) {
    if (facts.firewall_status.ok()) {
      facts.firewall_status = base::Annotate(legacy.status(), "legacy iptables");
    }
    return;
  }
  for (nft::ChainGist& chain : *legacy) facts.chains.push_back(std::move(chain));
}

}  // namespace spoke::node_checks
