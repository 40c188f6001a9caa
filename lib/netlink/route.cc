#include "lib/netlink/route.h"

#include <endian.h>
#include <linux/if_tunnel.h>
#include <linux/lwtunnel.h>
#include <sys/socket.h>

#include <cerrno>
#include <string_view>

#include "fmt/core.h"
#include "lib/netlink/exchange.h"
#include "lib/netlink/message.h"

namespace spoke::netlink {
namespace {

absl::Status Malformed() { return absl::DataLossError("malformed netlink route message"); }

// The attributes of lwtunnel.h have the same numbers for both families.
static_assert(static_cast<int>(LWTUNNEL_IP_ID) == static_cast<int>(LWTUNNEL_IP6_ID) &&
              static_cast<int>(LWTUNNEL_IP_DST) == static_cast<int>(LWTUNNEL_IP6_DST) &&
              static_cast<int>(LWTUNNEL_IP_FLAGS) == static_cast<int>(LWTUNNEL_IP6_FLAGS));

constexpr uint8_t kHopLimit = 64;

void PutEncapsulation(Request& request, const Encapsulation& encapsulation) {
  const bool v4 = encapsulation.remote.is_v4();
  request
      .PutValue(RTA_ENCAP_TYPE, static_cast<uint16_t>(v4 ? LWTUNNEL_ENCAP_IP : LWTUNNEL_ENCAP_IP6))
      .BeginNest(RTA_ENCAP)
      .PutValue(LWTUNNEL_IP_ID, htobe64(encapsulation.id))
      .PutAddress(LWTUNNEL_IP_DST, encapsulation.remote)
      .PutU8(static_cast<uint16_t>(v4 ? int{LWTUNNEL_IP_TTL} : int{LWTUNNEL_IP6_HOPLIMIT}),
             kHopLimit);
  // UDP over IPv6 has a checksum (RFC 8200, 8.1), and who gets one without drops it.
  if (!v4) request.PutValue(LWTUNNEL_IP6_FLAGS, TUNNEL_CSUM);
  request.EndNest();
}

// Reads a tunnel. Nullopt: malformed, or a tunnel of another kind.
std::optional<Encapsulation> ReadEncapsulation(uint16_t type, std::span<const uint8_t> payload) {
  if (type != LWTUNNEL_ENCAP_IP && type != LWTUNNEL_ENCAP_IP6) return std::nullopt;
  const ip::Family family = type == LWTUNNEL_ENCAP_IP ? ip::Family::kV4 : ip::Family::kV6;
  AttributeTable<LWTUNNEL_IP_DST> table(payload);
  const std::optional<ip::Address> remote = table[LWTUNNEL_IP_DST].Address(family);
  uint64_t id = 0;
  table.Read(LWTUNNEL_IP_ID, id);
  if (table.malformed() || !remote) return std::nullopt;
  return Encapsulation{*remote, static_cast<uint32_t>(be64toh(id))};
}

Request RouteRequest(std::string_view verb, uint16_t type, uint16_t flags, const Route& route) {
  rtmsg fixed{};
  fixed.rtm_family = FamilyNumber(route.destination.family());
  fixed.rtm_dst_len = static_cast<uint8_t>(route.destination.length());
  // Table ids above a byte go into RTA_TABLE alone.
  fixed.rtm_table =
      route.table < 256 ? static_cast<uint8_t>(route.table) : uint8_t{RT_TABLE_COMPAT};
  fixed.rtm_protocol = route.protocol;
  fixed.rtm_scope = route.scope;
  fixed.rtm_type = route.type;
  fixed.rtm_flags = route.on_link ? uint32_t{RTNH_F_ONLINK} : 0;
  Request request(fmt::format("{} route {}", verb, route.destination.ToString()), type, flags,
                  fixed);
  // A route without a destination is the default route.
  if (route.destination.length() > 0) request.PutAddress(RTA_DST, route.destination.base());
  if (route.link != 0) request.PutU32(RTA_OIF, static_cast<uint32_t>(route.link));
  if (route.gateway) request.PutAddress(RTA_GATEWAY, *route.gateway);
  if (route.metric != 0) request.PutU32(RTA_PRIORITY, route.metric);
  request.PutU32(RTA_TABLE, route.table);
  if (route.mtu != 0) {
    // IPv6 heeds no other when it forwards.
    request.BeginNest(RTA_METRICS)
        .PutU32(RTAX_LOCK, uint32_t{1} << RTAX_MTU)
        .PutU32(RTAX_MTU, route.mtu)
        .EndNest();
  }
  if (route.encapsulation) PutEncapsulation(request, *route.encapsulation);
  return request;
}

absl::StatusOr<std::vector<Route>> DumpMatching(Socket& socket, ip::Family family, uint32_t table,
                                                uint8_t protocol) {
  rtmsg fixed{};
  fixed.rtm_family = FamilyNumber(family);
  fixed.rtm_protocol = protocol;
  Request request("list routes", RTM_GETROUTE, 0, fixed);
  if (table != RT_TABLE_UNSPEC) request.PutU32(RTA_TABLE, table);
  // A table that has had no route yet does not exist, and a strict dump of it is refused.
  request.Tolerate(ENOENT);
  return DumpAs<Route>(
      socket, request, RTM_NEWROUTE,
      [=](std::span<const uint8_t> payload) -> absl::StatusOr<std::optional<Route>> {
        const auto head = ReadStruct<rtmsg>(payload);
        // A kernel without the family answers for all the others instead; routes it has learnt
        // (path MTU, redirects) come as clones.
        if (head &&
            (head->rtm_family != FamilyNumber(family) || (head->rtm_flags & RTM_F_CLONED) != 0)) {
          return std::nullopt;
        }
        absl::StatusOr<Route> route = ParseRoute(payload);
        if (!route.ok()) return route.status();
        if (table != RT_TABLE_UNSPEC && route->table != table) return std::nullopt;
        if (protocol != RTPROT_UNSPEC && route->protocol != protocol) return std::nullopt;
        return *route;
      });
}

}  // namespace

absl::StatusOr<Route> ParseRoute(std::span<const uint8_t> payload) {
  const auto fixed = ReadStruct<rtmsg>(payload);
  if (!fixed || (fixed->rtm_family != AF_INET && fixed->rtm_family != AF_INET6)) {
    return Malformed();
  }
  const ip::Family family = fixed->rtm_family == AF_INET ? ip::Family::kV4 : ip::Family::kV6;
  Route route;
  route.table = fixed->rtm_table;
  route.protocol = fixed->rtm_protocol;
  route.type = fixed->rtm_type;
  route.scope = fixed->rtm_scope;
  route.on_link = (fixed->rtm_flags & RTNH_F_ONLINK) != 0;
  AttributeTable<RTA_ENCAP> table(AttributeReader(payload, sizeof(rtmsg)));
  AttributeTable<RTAX_MTU> metrics(table[RTA_METRICS].payload);
  std::optional<ip::Address> destination;
  uint16_t tunnel = LWTUNNEL_ENCAP_NONE;
  table.Read(RTA_DST, family, destination);
  table.Read(RTA_OIF, route.link);
  table.Read(RTA_GATEWAY, family, route.gateway);
  table.Read(RTA_PRIORITY, route.metric);
  table.Read(RTA_TABLE, route.table);
  table.Read(RTA_ENCAP_TYPE, tunnel);
  metrics.Read(RTAX_MTU, route.mtu);
  if (table.malformed() || metrics.malformed()) return Malformed();
  const ip::Address any = family == ip::Family::kV4 ? ip::Address::V4(0) : ip::Address::V6(0, 0);
  const auto prefix = ip::Prefix::Of(destination.value_or(any), fixed->rtm_dst_len);
  if (!prefix.ok()) return Malformed();
  route.destination = *prefix;
  route.encapsulation = ReadEncapsulation(tunnel, table[RTA_ENCAP].payload);
  return route;
}

Request AddRoute(const Route& route) {
  return RouteRequest("add", RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, route);
}

Request ReplaceRoute(const Route& route) {
  return RouteRequest("replace", RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, route);
}

Request DeleteRoute(const Route& route) {
  Route like = route;
  // This matches whatever the route's scope is: a device's going away changes it.
  if (like.destination.family() == ip::Family::kV4) like.scope = RT_SCOPE_NOWHERE;
  Request request = RouteRequest("delete", RTM_DELROUTE, 0, like);
  request.Tolerate(ESRCH);
  return request;
}

absl::StatusOr<std::vector<Route>> DumpRoutes(Socket& socket, ip::Family family, uint32_t table,
                                              uint8_t protocol) {
  return DumpMatching(socket, family, table, protocol);
}

absl::StatusOr<std::vector<Route>> DumpAllRoutes(Socket& socket, ip::Family family) {
  return DumpMatching(socket, family, RT_TABLE_UNSPEC, RTPROT_UNSPEC);
}

}  // namespace spoke::netlink
