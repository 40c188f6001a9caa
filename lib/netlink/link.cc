#include "lib/netlink/link.h"

#include <arpa/inet.h>
#include <linux/if_link.h>
#include <linux/ipv6.h>
#include <linux/net_namespace.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sys/socket.h>

#include <cerrno>

#include "fmt/core.h"
#include "lib/netlink/message.h"
#include "lib/netlink/socket.h"

namespace spoke::netlink {
namespace {

constexpr std::string_view kVxlan = "vxlan";

ifinfomsg Fixed(int32_t index) {
  ifinfomsg fixed{};
  fixed.ifi_family = AF_UNSPEC;
  fixed.ifi_index = index;
  return fixed;
}

absl::Status Malformed() { return absl::DataLossError("malformed netlink link message"); }

void PutEnd(Request& request, const VethEnd& end, uint32_t mtu) {
  request.PutText(IFLA_IFNAME, end.name)
      .PutMac(IFLA_ADDRESS, end.mac)
      .PutU32(IFLA_MTU, mtu)
      .PutU32(IFLA_NUM_TX_QUEUES, 1)
      .PutU32(IFLA_NUM_RX_QUEUES, 1);
}

// Statistics would be most of each message.
void SkipStatistics(Request& request) { request.PutU32(IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS); }

// IFLA_INET_CONF is an array in which setting N is at N - 1.
std::vector<uint32_t> SettingsOf(std::span<const uint8_t> array) {
  std::vector<uint32_t> settings = {0};
  settings.reserve(1 + array.size() / sizeof(uint32_t));
  while (const auto value = ReadStruct<uint32_t>(array)) {
    settings.push_back(*value);
    array = array.subspan(sizeof(uint32_t));
  }
  return settings;
}

// IFLA_INET6_CONF is an array in which setting N is at N.
std::optional<uint32_t> SettingOf(std::span<const uint8_t> array, size_t setting) {
  const size_t begin = setting * sizeof(uint32_t);
  return begin > array.size() ? std::nullopt : ReadStruct<uint32_t>(array.subspan(begin));
}

absl::StatusOr<LinkState> GetOneState(Socket& socket, const Request& request) {
  const auto payload = GetOne(socket, request, RTM_NEWLINK);
  if (!payload.ok()) return payload.status();
  return ParseLinkState(*payload);
}

}  // namespace

absl::StatusOr<Link> ParseLink(std::span<const uint8_t> payload) {
  const auto fixed = ReadStruct<ifinfomsg>(payload);
  if (!fixed) return Malformed();
  AttributeTable<IFLA_NUM_RX_QUEUES> table(AttributeReader(payload, sizeof(ifinfomsg)));
  AttributeTable<IFLA_INFO_DATA> info(table[IFLA_LINKINFO].payload);
  Link link;
  link.index = fixed->ifi_index;
  link.name = table[IFLA_IFNAME].Text();
  link.kind = info[IFLA_INFO_KIND].Text();
  // Other lengths are other kinds of device (InfiniBand, tunnels): they have no MAC.
  link.mac = table[IFLA_ADDRESS].Mac().value_or(ip::MacAddress{});
  link.up = (fixed->ifi_flags & IFF_UP) != 0;
  table.Read(IFLA_MTU, link.mtu);
  table.Read(IFLA_NUM_TX_QUEUES, link.tx_queues);
  table.Read(IFLA_NUM_RX_QUEUES, link.rx_queues);
  table.Read(IFLA_GROUP, link.group);
  table.Read(IFLA_MASTER, link.master);
  table.Read(IFLA_LINK, link.peer_index);
  if (table.malformed() || info.malformed()) return Malformed();
  if (link.kind != kVxlan) return link;
  AttributeTable<IFLA_VXLAN_PORT> vxlan(info[IFLA_INFO_DATA].payload);
  vxlan.Read(IFLA_VXLAN_PORT, link.udp_port);
  if (vxlan.malformed()) return Malformed();
  link.udp_port = ntohs(link.udp_port);
  return link;
}

Request CreateVeth(const VethEnd& outer, const VethEnd& peer, int peer_netns, uint32_t mtu,
                   bool outer_up) {
  ifinfomsg fixed = Fixed(outer.index);
  fixed.ifi_flags = outer_up ? IFF_UP : 0;
  fixed.ifi_change = IFF_UP;
  Request request(fmt::format("create link {} with peer {}", outer.name, peer.name), RTM_NEWLINK,
                  NLM_F_CREATE | NLM_F_EXCL, fixed);
  PutEnd(request, outer, mtu);
  request.BeginNest(IFLA_LINKINFO)
      .PutText(IFLA_INFO_KIND, "veth")
      .BeginNest(IFLA_INFO_DATA)
      .BeginNest(VETH_INFO_PEER)
      .PutInnerFixed(Fixed(peer.index));
  PutEnd(request, peer, mtu);
  request.PutU32(IFLA_NET_NS_FD, static_cast<uint32_t>(peer_netns)).EndNest().EndNest().EndNest();
  return request;
}

Request CreateIfb(const std::string& name, uint32_t queue_length) {
  Request request(fmt::format("create link {}", name), RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL,
                  Fixed(0));
  request.PutText(IFLA_IFNAME, name)
      .PutU32(IFLA_TXQLEN, queue_length)
      .BeginNest(IFLA_LINKINFO)
      .PutText(IFLA_INFO_KIND, "ifb")
      .EndNest();
  return request;
}

Request CreateVxlan(const Vxlan& vxlan) {
  Request request(fmt::format("create link {} at UDP port {}", vxlan.name, vxlan.port), RTM_NEWLINK,
                  NLM_F_CREATE | NLM_F_EXCL, Fixed(0));
  request.PutText(IFLA_IFNAME, vxlan.name)
      .PutU32(IFLA_MTU, vxlan.mtu)
      .BeginNest(IFLA_LINKINFO)
      .PutText(IFLA_INFO_KIND, kVxlan)
      .BeginNest(IFLA_INFO_DATA)
      .PutValue(IFLA_VXLAN_PORT, htons(vxlan.port))
      .PutU8(IFLA_VXLAN_LEARNING, 0)
      .PutU8(IFLA_VXLAN_COLLECT_METADATA, 1)
      .PutBytes(IFLA_VXLAN_GPE, {})
      .PutValue(IFLA_VXLAN_PORT_RANGE, ifla_vxlan_port_range{.low = htons(vxlan.first_source_port),
                                                             .high = htons(vxlan.last_source_port)})
      .EndNest()
      .EndNest();
  return request;
}

Request ConfigureLink(int32_t index, const LinkSettings& settings) {
  Request request(fmt::format("configure link {}", index), RTM_SETLINK, 0, Fixed(index));
  request.BeginNest(IFLA_AF_SPEC);
  if (!settings.ipv4.empty()) {
    request.BeginNest(AF_INET).BeginNest(IFLA_INET_CONF);
    for (const LinkSettings::Value& value : settings.ipv4) {
      request.PutU32(value.setting, value.value);
    }
    request.EndNest().EndNest();
  }
  if (settings.address_generation) {
    request.BeginNest(AF_INET6)
        .PutU8(IFLA_INET6_ADDR_GEN_MODE, *settings.address_generation)
        .EndNest();
  }
  request.EndNest();
  return request;
}

Request SetLinkUp(int32_t index, bool up) {
  ifinfomsg fixed = Fixed(index);
  fixed.ifi_flags = up ? IFF_UP : 0;
  fixed.ifi_change = IFF_UP;
  return {fmt::format("set link {} {}", index, up ? "up" : "down"), RTM_SETLINK, 0, fixed};
}

Request RetireLink(const std::string& name, uint32_t group) {
  ifinfomsg fixed = Fixed(0);
  fixed.ifi_change = IFF_UP;
  Request request(fmt::format("retire link {}", name), RTM_SETLINK, 0, fixed);
  request.PutText(IFLA_IFNAME, name).PutU32(IFLA_GROUP, group);
  return request;
}

Request DeleteLinkGroup(uint32_t group) {
  Request request(fmt::format("delete links of group {}", group), RTM_DELLINK, 0, Fixed(0));
  request.PutU32(IFLA_GROUP, group);
  return request;
}

Request DeleteLink(int32_t index) {
  Request request(fmt::format("delete link {}", index), RTM_DELLINK, 0, Fixed(index));
  request.Tolerate(ENODEV);
  return request;
}

Request DeleteLink(const std::string& name) {
  Request request(fmt::format("delete link {}", name), RTM_DELLINK, 0, Fixed(0));
  request.PutText(IFLA_IFNAME, name).Tolerate(ENODEV);
  return request;
}

absl::StatusOr<Link> GetLink(Socket& socket, const std::string& name) {
  if (name.empty() || name.size() > kMaxLinkName) {
    return absl::NotFoundError(fmt::format("no network device can have the name '{}'", name));
  }
  Request request(fmt::format("read link {}", name), RTM_GETLINK, 0, Fixed(0));
  SkipStatistics(request);
  request.PutText(IFLA_IFNAME, name);
  const auto payload = GetOne(socket, request, RTM_NEWLINK);
  if (!payload.ok()) return payload.status();
  return ParseLink(*payload);
}

absl::StatusOr<std::vector<Link>> DumpLinks(Socket& socket, std::string_view prefix) {
  Request request("list links", RTM_GETLINK, 0, Fixed(0));
  SkipStatistics(request);
  return DumpAs<Link>(
      socket, request, RTM_NEWLINK,
      [prefix](std::span<const uint8_t> payload) -> absl::StatusOr<std::optional<Link>> {
        absl::StatusOr<Link> link = ParseLink(payload);
        if (!link.ok()) return link.status();
        if (link->name.compare(0, prefix.size(), prefix) != 0) return std::nullopt;
        return *std::move(link);
      });
}

absl::StatusOr<LinkState> ParseLinkState(std::span<const uint8_t> payload) {
  auto link = ParseLink(payload);
  if (!link.ok()) return link.status();
  LinkState state{.link = *std::move(link)};
  AttributeTable<IFLA_LINK_NETNSID> table(AttributeReader(payload, sizeof(ifinfomsg)));
  // There is a nest for each family.
  AttributeTable<AF_INET6> families(table[IFLA_AF_SPEC].payload);
  AttributeTable<IFLA_INET_CONF> v4(families[AF_INET].payload);
  AttributeTable<IFLA_INET6_ADDR_GEN_MODE> v6(families[AF_INET6].payload);
  state.group = state.link.group;
  state.qdisc = table[IFLA_QDISC].Text();
  table.Read(IFLA_LINK_NETNSID, state.peer_netns);
  const std::span<const uint8_t> settings = v4[IFLA_INET_CONF].payload;
  if (!settings.empty()) state.ipv4 = SettingsOf(settings);
  state.address_generation = v6[IFLA_INET6_ADDR_GEN_MODE].U8();
  state.accept_ra = SettingOf(v6[IFLA_INET6_CONF].payload, DEVCONF_ACCEPT_RA);
  state.disable_ipv6 = SettingOf(v6[IFLA_INET6_CONF].payload, DEVCONF_DISABLE_IPV6);
  if (table.malformed() || families.malformed() || v4.malformed() || v6.malformed()) {
    return Malformed();
  }
  return state;
}

absl::StatusOr<LinkState> GetLinkState(Socket& socket, const std::string& name) {
  if (name.empty() || name.size() > kMaxLinkName) {
    return absl::NotFoundError(fmt::format("no network device can have the name '{}'", name));
  }
  Request request(fmt::format("read link {}", name), RTM_GETLINK, 0, Fixed(0));
  SkipStatistics(request);
  request.PutText(IFLA_IFNAME, name);
  return GetOneState(socket, request);
}

absl::StatusOr<LinkState> GetLinkState(Socket& socket, int32_t index) {
  Request request(fmt::format("read link {}", index), RTM_GETLINK, 0, Fixed(index));
  SkipStatistics(request);
  return GetOneState(socket, request);
}

absl::StatusOr<std::vector<LinkState>> DumpLinkStates(Socket& socket, std::string_view prefix) {
  Request request("list links", RTM_GETLINK, 0, Fixed(0));
  SkipStatistics(request);
  return DumpAs<LinkState>(
      socket, request, RTM_NEWLINK,
      [prefix](std::span<const uint8_t> payload) -> absl::StatusOr<std::optional<LinkState>> {
        absl::StatusOr<LinkState> state = ParseLinkState(payload);
        if (!state.ok()) return state.status();
        if (state->link.name.compare(0, prefix.size(), prefix) != 0) return std::nullopt;
        return *std::move(state);
      });
}

absl::StatusOr<std::optional<int32_t>> NetnsNumber(Socket& socket, int netns) {
  rtgenmsg fixed{};
  fixed.rtgen_family = AF_UNSPEC;
  Request request("number of a network namespace", RTM_GETNSID, 0, fixed);
  request.PutU32(NETNSA_FD, static_cast<uint32_t>(netns));
  const auto payload = GetOne(socket, request, RTM_NEWNSID);
  if (!payload.ok()) return payload.status();
  if (!ReadStruct<rtgenmsg>(*payload)) return Malformed();
  // The struct is one byte long, and attributes begin at a multiple of four.
  const AttributeTable<NETNSA_NSID> table(AttributeReader(*payload, NLMSG_ALIGN(sizeof(rtgenmsg))));
  const std::optional<int32_t> number = table[NETNSA_NSID].I32();
  if (!number) return Malformed();
  // The number -1 (NETNSA_NSID_NOT_ASSIGNED) says that nothing here has needed one for it.
  return *number < 0 ? std::nullopt : number;
}

Request NumberNetns(int netns, std::optional<int32_t> number) {
  rtgenmsg fixed{};
  fixed.rtgen_family = AF_UNSPEC;
  Request request("number a network namespace", RTM_NEWNSID, NLM_F_CREATE, fixed);
  request.PutU32(NETNSA_FD, static_cast<uint32_t>(netns));
  request.PutU32(NETNSA_NSID, static_cast<uint32_t>(number.value_or(NETNSA_NSID_NOT_ASSIGNED)));
  return request;
}

Request SetLinkMac(int32_t index, const ip::MacAddress& mac) {
  Request request(fmt::format("set the MAC of link {}", index), RTM_SETLINK, 0, Fixed(index));
  request.PutMac(IFLA_ADDRESS, mac);
  return request;
}

Request SetLinkMtu(int32_t index, uint32_t mtu) {
  Request request(fmt::format("set the MTU of link {}", index), RTM_SETLINK, 0, Fixed(index));
  request.PutU32(IFLA_MTU, mtu);
  return request;
}

}  // namespace spoke::netlink
