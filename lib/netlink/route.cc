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

// Nothing: malformed, or a tunnel of another kind.
std::optional<Encapsulation> ReadEncapsulation(uint16_t type, std::span<const uint8_t> payload) {
  if (type != LWTUNNEL_ENCAP_IP && type != LWTUNNEL_ENCAP_IP6) return std::nullopt;
  const ip::Family family = type == LWTUNNEL_ENCAP_IP ? ip::Family::kV4 : ip::Family::kV6;
  std::optional<ip::Address> remote;
  uint32_t id = 0;
  AttributeReader reader(payload);
  while (const auto attribute = reader.Next()) {
    if (attribute->type == LWTUNNEL_IP_DST) remote = attribute->Address(family);
    if (attribute->type == LWTUNNEL_IP_ID) {
      id = static_cast<uint32_t>(be64toh(ReadStruct<uint64_t>(attribute->payload).value_or(0)));
    }
  }
  if (reader.malformed() || !remote) return std::nullopt;
  return Encapsulation{*remote, id};
}

uint32_t ReadMtu(std::span<const uint8_t> metrics) {
  uint32_t mtu = 0;
  AttributeReader reader(metrics);
  while (const auto attribute = reader.Next()) {
    if (attribute->type == RTAX_MTU) mtu = attribute->U32().value_or(0);
  }
  return mtu;
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
  ip::Address destination = family == ip::Family::kV4 ? ip::Address::V4(0) : ip::Address::V6(0, 0);

  uint16_t tunnel = LWTUNNEL_ENCAP_NONE;
  std::span<const uint8_t> tunnel_data;
  AttributeReader reader(payload, sizeof(rtmsg));
  while (const auto attribute = reader.Next()) {
    switch (attribute->type) {
      case RTA_ENCAP_TYPE:
        tunnel = ReadStruct<uint16_t>(attribute->payload).value_or(LWTUNNEL_ENCAP_NONE);
        break;
      case RTA_ENCAP:
        tunnel_data = attribute->payload;
        break;
      case RTA_METRICS:
        route.mtu = ReadMtu(attribute->payload);
        break;
      case RTA_DST: {
        const auto address = attribute->Address(family);
        if (!address) return Malformed();
        destination = *address;
        break;
      }
      case RTA_OIF:
        if (!attribute->I32()) return Malformed();
        route.link = *attribute->I32();
        break;
      case RTA_GATEWAY:
        route.gateway = attribute->Address(family);
        if (!route.gateway) return Malformed();
        break;
      case RTA_PRIORITY:
        if (!attribute->U32()) return Malformed();
        route.metric = *attribute->U32();
        break;
      case RTA_TABLE:
        if (!attribute->U32()) return Malformed();
        route.table = *attribute->U32();
        break;
      default:
        break;
    }
  }
  if (reader.malformed()) return Malformed();
  const auto prefix = ip::Prefix::Of(destination, fixed->rtm_dst_len);
  if (!prefix.ok()) return Malformed();
  route.destination = *prefix;
  route.encapsulation = ReadEncapsulation(tunnel, tunnel_data);
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
  // Whatever its scope is: a device's going away changes it.
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
