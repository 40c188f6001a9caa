#include "netagent/egress/gateways/netlink_gateway_routes.h"

#include <linux/if_link.h>
#include <linux/ip.h>
#include <linux/rtnetlink.h>

#include <cerrno>
#include <span>
#include <vector>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/ip/prefix.h"
#include "lib/netlink/link.h"
#include "lib/netlink/network_layer.h"
#include "lib/netlink/socket.h"
#include "netagent/claims.h"

namespace spoke::netagent {
namespace {

constexpr uint32_t kMetricV6 = 1024;  // The metric that the kernel itself uses where none is given.
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

// Checks for the least MTU that each family works with (RFC 791, RFC 8200), for the packets inside.
absl::Status CheckRoom(const netlink::Link& nic, ip::Family family) {
  const uint32_t least = family == ip::Family::kV4 ? 576 : 1280;
  const uint32_t needed = least + TunnelOverhead(family);
  if (nic.mtu >= needed) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("the NIC {} has an MTU of {} bytes; a tunnel for {} needs {}: raise it", nic.name,
                  nic.mtu, family == ip::Family::kV4 ? "IPv4" : "IPv6", needed));
}

// Makes the route as the kernel says it again.
netlink::Route ByTunnel(uint32_t mark, const GatewayEndpoint& gateway, const netlink::Link& tunnel,
                        uint32_t nic_mtu) {
  const ip::Family family = gateway.address.family();
  const uint32_t overhead = TunnelOverhead(family);
  return {.destination = Everything(family),
          .table = TableOf(mark),
          .protocol = claims::kRouteProtocol,
          .scope = family == ip::Family::kV4 ? uint8_t{RT_SCOPE_LINK} : uint8_t{RT_SCOPE_UNIVERSE},
          .link = tunnel.index,
          .metric = family == ip::Family::kV4 ? 0U : kMetricV6,
          .encapsulation = netlink::Encapsulation{gateway.address, claims::kTunnelId},
          .mtu = nic_mtu > overhead ? nic_mtu - overhead : 0};
}

}  // namespace

absl::StatusOr<std::unique_ptr<NetlinkGatewayRoutes>> NetlinkGatewayRoutes::Create(
    std::string nic) {
  ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::Open());
  return std::unique_ptr<NetlinkGatewayRoutes>(
      new NetlinkGatewayRoutes(std::move(socket), std::move(nic)));
}

absl::Status NetlinkGatewayRoutes::Send(const netlink::Request& request) {
  return netlink::SendBatch(socket_, std::span(&request, 1)).status;
}

absl::StatusOr<netlink::Link> NetlinkGatewayRoutes::Nic() {
  auto nic = netlink::GetLink(socket_, nic_);
  if (absl::IsNotFound(nic.status())) {
    return absl::NotFoundError(fmt::format("there is no NIC {}", nic_));
  }
  return nic;
}

absl::StatusOr<std::optional<netlink::Link>> NetlinkGatewayRoutes::Tunnel() {
  auto link = netlink::GetLink(socket_, std::string(claims::kTunnelLink));
  if (absl::IsNotFound(link.status())) return std::nullopt;
  if (!link.ok()) return link.status();
  if (link->kind != "vxlan") return std::nullopt;
  return *std::move(link);
}

absl::StatusOr<std::map<uint32_t, GatewayEndpoint>> NetlinkGatewayRoutes::Read() {
  std::map<uint32_t, GatewayEndpoint> ways;
  ASSIGN_OR_RETURN(const auto tunnel, Tunnel());
  auto nic = Nic();
  if (!nic.ok() && !absl::IsNotFound(nic.status())) return nic.status();
  const uint32_t nic_mtu = nic.ok() ? nic->mtu : 0;
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
        if (route.destination.length() != 0) continue;
        if (route.gateway) ways.emplace(mark, *route.gateway);
        if (!route.encapsulation || !tunnel) continue;
        const GatewayEndpoint gateway(route.encapsulation->remote,
                                      policy::GatewayTransport::kVxlan);
        if (route == ByTunnel(mark, gateway, *tunnel, nic_mtu)) ways.emplace(mark, gateway);
      }
    }
  }
  return ways;
}

absl::Status NetlinkGatewayRoutes::Lead(uint32_t mark, const GatewayEndpoint& gateway) {
  if (!IsGatewayMark(mark)) {
    return absl::InternalError(fmt::format("mark {} is no gateway's", mark));
  }
  ASSIGN_OR_RETURN(const netlink::Link nic, Nic());
  const ip::Family family = gateway.address.family();
  netlink::Route route{.destination = Everything(family),
                       .table = TableOf(mark),
                       .protocol = claims::kRouteProtocol,
                       .link = nic.index,
                       .gateway = gateway.address,
                       .on_link = true};
  if (gateway.is_tunnel()) {
    RETURN_IF_ERROR(CheckRoom(nic, family));
    ASSIGN_OR_RETURN(const auto tunnel, Tunnel());
    if (!tunnel) {
      return absl::FailedPreconditionError(
          fmt::format("there is no device {}", claims::kTunnelLink));
    }
    route = ByTunnel(mark, gateway, *tunnel, nic.mtu);
  }
  const ip::Family other = family == ip::Family::kV4 ? ip::Family::kV6 : ip::Family::kV4;
  // The route comes first: a packet that the rule takes must find it. What the mark led to in the
  // other family would otherwise be read as its gateway.
  const std::vector<netlink::Request> batch = {
      netlink::ReplaceRoute(route),
      netlink::AddRule(RuleOf(mark, family)),
      netlink::DeleteRule(RuleOf(mark, other)),
  };
  return netlink::SendBatch(socket_, batch).status;
}

absl::StatusOr<std::optional<uint16_t>> NetlinkGatewayRoutes::TunnelPort() {
  ASSIGN_OR_RETURN(const auto tunnel, Tunnel());
  if (!tunnel || !tunnel->up) return std::nullopt;
  return tunnel->udp_port;
}

absl::Status NetlinkGatewayRoutes::PutTunnel(uint16_t port) {
  ASSIGN_OR_RETURN(const netlink::Link nic, Nic());
  RETURN_IF_ERROR(CheckRoom(nic, ip::Family::kV4));
  const uint32_t mtu = nic.mtu - TunnelOverhead(ip::Family::kV4);
  auto link = netlink::GetLink(socket_, std::string(claims::kTunnelLink));
  if (!link.ok() && !absl::IsNotFound(link.status())) return link.status();
  if (link.ok() && (link->kind != "vxlan" || link->udp_port != port)) {
    // The name is ours; and a port cannot be changed.
    RETURN_IF_ERROR(Send(netlink::DeleteLink(link->index)));
    link = absl::NotFoundError("deleted");
  }
  if (!link.ok()) return MakeTunnel(port, mtu);
  if (link->mtu != mtu) RETURN_IF_ERROR(Send(netlink::SetLinkMtu(link->index, mtu)));
  return link->up ? absl::OkStatus() : Send(netlink::SetLinkUp(link->index, true));
}

absl::Status NetlinkGatewayRoutes::MakeTunnel(uint16_t port, uint32_t mtu) {
  const std::string name(claims::kTunnelLink);
  absl::Status taken = absl::FailedPreconditionError(
      fmt::format("somebody else on this node has UDP port {}, perhaps another overlay network: "
                  "write another tunnelPort in the policies",
                  port));
  // Its source ports stay clear of 65330, which Azure drops whatever the node's range is.
  absl::Status status = Send(netlink::CreateVxlan({.name = name, .port = port, .mtu = mtu}));
  if (absl::IsAlreadyExists(status)) return taken;
  if (absl::IsUnimplemented(status)) {
    return absl::UnimplementedError("the kernel lacks devices of kind vxlan (CONFIG_VXLAN)");
  }
  RETURN_IF_ERROR(status);
  ASSIGN_OR_RETURN(const netlink::Link link, netlink::GetLink(socket_, name));
  netlink::Request quiet = netlink::ConfigureLink(
      link.index, {.ipv4 = {}, .address_generation = uint8_t{IN6_ADDR_GEN_MODE_NONE}});
  quiet.Tolerate(EAFNOSUPPORT);
  status = Send(netlink::ConfigureLink(link.index, {.ipv4 = {{IPV4_DEVCONF_FORWARDING, 1},
                                                             {IPV4_DEVCONF_RP_FILTER, 2},
                                                             {IPV4_DEVCONF_ACCEPT_REDIRECTS, 0},
                                                             {IPV4_DEVCONF_SEND_REDIRECTS, 0}},
                                                    .address_generation = std::nullopt}));
  status.Update(Send(quiet));
  status.Update(
      Send(netlink::AddAddress(link.index, claims::kTunnelAddress, uint8_t{RT_SCOPE_HOST})));
  const absl::Status up =
      status.ok() ? Send(netlink::SetLinkUp(link.index, true)) : absl::OkStatus();
  if (status.ok() && up.ok()) return absl::OkStatus();
  Send(netlink::DeleteLink(link.index)).IgnoreError();  // The tunnel is made whole or not at all.
  if (absl::IsAlreadyExists(up)) return taken;
  status.Update(up);
  return status;
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
