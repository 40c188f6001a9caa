#include "lib/netlink/network_layer.h"

#include <endian.h>
#include <linux/fib_rules.h>
#include <linux/if_addr.h>
#include <linux/if_tunnel.h>
#include <linux/lwtunnel.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <cerrno>
#include <optional>
#include <string_view>

#include "fmt/core.h"

namespace spoke::netlink {
namespace {

absl::Status Malformed(std::string_view what) {
  return absl::DataLossError(fmt::format("malformed netlink {} message", what));
}

ndmsg NeighbourHeader(int32_t link, const ip::Address& address) {
  ndmsg fixed{};
  fixed.ndm_family = FamilyNumber(address.family());
  fixed.ndm_ifindex = link;
  return fixed;
}

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

// The number by which the kernel says that it suppresses nothing.
constexpr uint32_t kNotSuppressed = 0xFFFFFFFF;

Request RuleRequest(std::string_view verb, uint16_t type, uint16_t flags, const Rule& rule) {
  fib_rule_hdr fixed{};
  fixed.family = FamilyNumber(rule.family);
  fixed.src_len = rule.from ? static_cast<uint8_t>(rule.from->length()) : uint8_t{0};
  // Table ids above a byte go into FRA_TABLE alone.
  fixed.table = rule.table < 256 ? static_cast<uint8_t>(rule.table) : uint8_t{RT_TABLE_UNSPEC};
  fixed.action = FR_ACT_TO_TBL;
  Request request(fmt::format("{} rule {} from {}", verb, rule.priority,
                              rule.from ? rule.from->ToString() : "all"),
                  type, flags, fixed);
  if (rule.from) request.PutAddress(FRA_SRC, rule.from->base());
  request.PutU32(FRA_PRIORITY, rule.priority).PutU32(FRA_TABLE, rule.table);
  if (rule.suppress_prefix_length) {
    request.PutU32(FRA_SUPPRESS_PREFIXLEN, *rule.suppress_prefix_length);
  }
  if (rule.mark) request.PutU32(FRA_FWMARK, rule.mark->value).PutU32(FRA_FWMASK, rule.mark->mask);
  request.PutU8(FRA_PROTOCOL, rule.protocol);
  return request;
}

}  // namespace

// ---- Addresses.

absl::StatusOr<LinkAddress> ParseAddress(std::span<const uint8_t> payload) {
  const auto fixed = ReadStruct<ifaddrmsg>(payload);
  if (!fixed || (fixed->ifa_family != AF_INET && fixed->ifa_family != AF_INET6)) {
    return Malformed("address");
  }
  const ip::Family family = fixed->ifa_family == AF_INET ? ip::Family::kV4 : ip::Family::kV6;
  LinkAddress result;
  result.link = static_cast<int32_t>(fixed->ifa_index);
  result.prefix_length = fixed->ifa_prefixlen;
  result.scope = fixed->ifa_scope;
  result.flags = fixed->ifa_flags;

  AttributeTable<IFA_FLAGS> table(AttributeReader(payload, sizeof(ifaddrmsg)));
  // IFA_LOCAL is the device's own; IFA_ADDRESS is too unless the link is point-to-point, where it
  // is the far end's. IPv6 leaves IFA_LOCAL out when there is no far end.
  const std::optional<ip::Address> local = table[IFA_LOCAL].Address(family);
  const std::optional<ip::Address> address = local ? local : table[IFA_ADDRESS].Address(family);
  // The fixed part has room for the first eight flags alone.
  table.Read(IFA_FLAGS, result.flags);
  if (table.malformed() || !address) return Malformed("address");
  result.address = *address;
  return result;
}

Request AddAddress(int32_t link, const ip::Address& address, uint8_t scope) {
  ifaddrmsg fixed{};
  fixed.ifa_family = FamilyNumber(address.family());
  fixed.ifa_prefixlen = static_cast<uint8_t>(address.bits());
  fixed.ifa_flags = address.is_v4() ? 0 : IFA_F_NODAD;
  fixed.ifa_scope = scope;
  fixed.ifa_index = static_cast<uint32_t>(link);
  Request request(fmt::format("add address {}", address.ToString()), RTM_NEWADDR,
                  NLM_F_CREATE | NLM_F_EXCL, fixed);
  request.PutAddress(IFA_LOCAL, address).PutAddress(IFA_ADDRESS, address);
  return request;
}

absl::StatusOr<std::vector<LinkAddress>> DumpAddresses(Socket& socket, ip::Family family,
                                                       int32_t link) {
  ifaddrmsg fixed{};
  fixed.ifa_family = FamilyNumber(family);
  fixed.ifa_index = static_cast<uint32_t>(link);
  const Request request("list addresses", RTM_GETADDR, 0, fixed);
  return DumpAs<LinkAddress>(
      socket, request, RTM_NEWADDR,
      [=](std::span<const uint8_t> payload) -> absl::StatusOr<std::optional<LinkAddress>> {
        const auto head = ReadStruct<ifaddrmsg>(payload);
        // A kernel without the family answers for all the others instead.
        if (head && head->ifa_family != FamilyNumber(family)) return std::nullopt;
        absl::StatusOr<LinkAddress> address = ParseAddress(payload);
        if (!address.ok()) return address.status();
        if (link != 0 && address->link != link) return std::nullopt;
        return *address;
      });
}

// ---- Neighbours.

absl::StatusOr<Neighbour> ParseNeighbour(std::span<const uint8_t> payload) {
  const auto fixed = ReadStruct<ndmsg>(payload);
  if (!fixed || (fixed->ndm_family != AF_INET && fixed->ndm_family != AF_INET6)) {
    return Malformed("neighbour");
  }
  const ip::Family family = fixed->ndm_family == AF_INET ? ip::Family::kV4 : ip::Family::kV6;
  Neighbour neighbour;
  neighbour.link = fixed->ndm_ifindex;
  neighbour.state = fixed->ndm_state;
  const AttributeTable<NDA_LLADDR> table(AttributeReader(payload, sizeof(ndmsg)));
  const std::optional<ip::Address> address = table[NDA_DST].Address(family);
  if (table.malformed() || !address) return Malformed("neighbour");
  neighbour.mac = table[NDA_LLADDR].Mac();
  neighbour.address = *address;
  return neighbour;
}

Request SetPermanentNeighbour(int32_t link, const ip::Address& address, const ip::MacAddress& mac) {
  ndmsg fixed = NeighbourHeader(link, address);
  fixed.ndm_state = NUD_PERMANENT;
  Request request(fmt::format("set neighbour {}", address.ToString()), RTM_NEWNEIGH,
                  NLM_F_CREATE | NLM_F_REPLACE, fixed);
  request.PutAddress(NDA_DST, address).PutMac(NDA_LLADDR, mac);
  return request;
}

Request DeleteNeighbour(int32_t link, const ip::Address& address) {
  Request request(fmt::format("delete neighbour {}", address.ToString()), RTM_DELNEIGH, 0,
                  NeighbourHeader(link, address));
  request.PutAddress(NDA_DST, address).Tolerate(ENOENT);
  return request;
}

absl::StatusOr<std::vector<Neighbour>> DumpNeighbours(Socket& socket, ip::Family family,
                                                      int32_t link) {
  ndmsg fixed{};
  fixed.ndm_family = FamilyNumber(family);
  Request request("list neighbours", RTM_GETNEIGH, 0, fixed);
  if (link != 0) request.PutU32(NDA_IFINDEX, static_cast<uint32_t>(link));
  return DumpAs<Neighbour>(
      socket, request, RTM_NEWNEIGH,
      [=](std::span<const uint8_t> payload) -> absl::StatusOr<std::optional<Neighbour>> {
        const auto head = ReadStruct<ndmsg>(payload);
        // A kernel without the family answers for all the others instead (AF_BRIDGE among them).
        if (head && head->ndm_family != FamilyNumber(family)) return std::nullopt;
        absl::StatusOr<Neighbour> neighbour = ParseNeighbour(payload);
        if (!neighbour.ok()) return neighbour.status();
        if (link != 0 && neighbour->link != link) return std::nullopt;
        return *neighbour;
      });
}

// ---- Routes.

absl::StatusOr<Route> ParseRoute(std::span<const uint8_t> payload) {
  const auto fixed = ReadStruct<rtmsg>(payload);
  if (!fixed || (fixed->rtm_family != AF_INET && fixed->rtm_family != AF_INET6)) {
    return Malformed("route");
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
  if (table.malformed() || metrics.malformed()) return Malformed("route");
  const ip::Address any = family == ip::Family::kV4 ? ip::Address::V4(0) : ip::Address::V6(0, 0);
  const auto prefix = ip::Prefix::Of(destination.value_or(any), fixed->rtm_dst_len);
  if (!prefix.ok()) return Malformed("route");
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

// ---- Rules.

absl::StatusOr<Rule> ParseRule(std::span<const uint8_t> payload) {
  const auto fixed = ReadStruct<fib_rule_hdr>(payload);
  if (!fixed || (fixed->family != AF_INET && fixed->family != AF_INET6)) return Malformed("rule");
  Rule rule;
  rule.family = fixed->family == AF_INET ? ip::Family::kV4 : ip::Family::kV6;
  rule.table = fixed->table;
  std::optional<ip::Address> source;
  std::optional<uint32_t> mark;
  std::optional<uint32_t> mask;
  AttributeTable<FRA_PROTOCOL> table(AttributeReader(payload, sizeof(fib_rule_hdr)));
  table.Read(FRA_SRC, rule.family, source);
  table.Read(FRA_PRIORITY, rule.priority);
  table.Read(FRA_TABLE, rule.table);
  table.Read(FRA_SUPPRESS_PREFIXLEN, rule.suppress_prefix_length);
  table.Read(FRA_FWMARK, mark);
  table.Read(FRA_FWMASK, mask);
  table.Read(FRA_PROTOCOL, rule.protocol);
  if (table.malformed()) return Malformed("rule");
  if (rule.suppress_prefix_length == kNotSuppressed) rule.suppress_prefix_length.reset();
  if (mark || mask) rule.mark = {mark.value_or(0), mask.value_or(PacketMark().mask)};
  if (source) {
    const auto prefix = ip::Prefix::Of(*source, fixed->src_len);
    if (!prefix.ok()) return Malformed("rule");
    rule.from = *prefix;
  }
  return rule;
}

Request AddRule(const Rule& rule) {
  Request request = RuleRequest("add", RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL, rule);
  request.Tolerate(EEXIST);
  return request;
}

Request DeleteRule(const Rule& rule) {
  Request request = RuleRequest("delete", RTM_DELRULE, 0, rule);
  request.Tolerate(ENOENT);
  return request;
}

absl::StatusOr<std::vector<Rule>> DumpRules(Socket& socket, ip::Family family, uint8_t protocol) {
  fib_rule_hdr fixed{};
  fixed.family = FamilyNumber(family);
  const Request request("list rules", RTM_GETRULE, 0, fixed);
  return DumpAs<Rule>(
      socket, request, RTM_NEWRULE,
      [=](std::span<const uint8_t> payload) -> absl::StatusOr<std::optional<Rule>> {
        const auto head = ReadStruct<fib_rule_hdr>(payload);
        // A kernel without the family answers for all the others instead.
        if (head && (head->family != FamilyNumber(family) || head->action != FR_ACT_TO_TBL)) {
          return std::nullopt;
        }
        absl::StatusOr<Rule> rule = ParseRule(payload);
        if (!rule.ok()) return rule.status();
        if (protocol != RTPROT_UNSPEC && rule->protocol != protocol) return std::nullopt;
        return *rule;
      });
}

}  // namespace spoke::netlink
