#include "lib/netlink/link_state.h"

#include <linux/if_link.h>
#include <linux/net_namespace.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "fmt/core.h"
#include "lib/netlink/exchange.h"
#include "lib/netlink/message.h"

namespace spoke::netlink {
namespace {

absl::Status Malformed() { return absl::DataLossError("malformed netlink link message"); }

ifinfomsg Fixed(int32_t index) {
  ifinfomsg fixed{};
  fixed.ifi_family = AF_UNSPEC;
  fixed.ifi_index = index;
  return fixed;
}

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

// Statistics would be most of each message.
void SkipStatistics(Request& request) { request.PutU32(IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS); }

absl::StatusOr<LinkState> GetOneState(Socket& socket, const Request& request) {
  const auto payload = GetOne(socket, request, RTM_NEWLINK);
  if (!payload.ok()) return payload.status();
  return ParseLinkState(*payload);
}

}  // namespace

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
