#include <linux/rtnetlink.h>

#include "lib/netlink/message.h"
#include "lib/netlink/network_layer.h"
#include "lib/netlink/testing/recorded_messages.h"

namespace spoke::netlink {
namespace {

constexpr ip::Address kV4 = ip::Address::V4(0x0A000109);
constexpr ip::Address kV6 = ip::Address::V6(0xFD00'0000'0000'0000, 9);

Route DefaultV4() {
  return {.destination = ip::Prefix(),
          .protocol = 83,
          .link = 78,
          .gateway = ip::Address::V4(0xA9FE0101),
          .on_link = true};
}
Route HostV4() {
  return {.destination = ip::Prefix::Host(kV4), .protocol = 83, .scope = RT_SCOPE_LINK, .link = 77};
}
Route InATunnel(const ip::Address& remote) {
  return {.destination =
              remote.is_v4() ? ip::Prefix() : ip::Prefix::Of(ip::Address::V6(0, 0), 0).value(),
          .table = 83'108,
          .protocol = 83,
          .link = 77,
          .encapsulation = Encapsulation{remote, 83},
          .mtu = 1464};
}
Route Unreachable(const ip::Address& address) {
  return {.destination = ip::Prefix::Host(address),
          .protocol = 83,
          .type = RTN_UNREACHABLE,
          .metric = 8'388'608};
}

TEST(ParseRoute, ReadsRoutesAsTheKernelSentThem) {
  EXPECT_EQ(ParseRoute(FromHex(kDefaultRouteV4)).value(), DefaultV4());
  EXPECT_EQ(ParseRoute(FromHex(kHostRouteV4)).value(), HostV4());
  EXPECT_EQ(ParseRoute(FromHex(kUnreachableV4)).value(), Unreachable(kV4));
  Route v6 = Unreachable(kV6);
  v6.link = 1;
  EXPECT_EQ(ParseRoute(FromHex(kUnreachableV6)).value(), v6);
}

TEST(ParseRoute, SurvivesDamage) {
  for (const auto recorded : {kDefaultRouteV4, kHostRouteV4, kUnreachableV4, kUnreachableV6}) {
    ExpectSurvivesDamage(recorded, &ParseRoute);
  }
}

TEST(ParseRoute, RefusesALengthTheFamilyDoesNotHave) {
  auto bytes = FromHex(kHostRouteV4);
  bytes[1] = 33;
  EXPECT_TRUE(absl::IsDataLoss(ParseRoute(bytes).status()));
}

TEST(RouteRequests, AreReadBackAsTheyWereAsked) {
  Route far_table = HostV4();
  far_table.table = 1000;
  for (const Route& route : {DefaultV4(), HostV4(), Unreachable(kV4), Unreachable(kV6), far_table,
                             InATunnel(kV4), InATunnel(kV6)}) {
    const Request add = AddRoute(route);
    const auto message = MessageReader(add.bytes()).Next();
    EXPECT_EQ(message->flags, NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL);
    EXPECT_EQ(ParseRoute(message->payload).value(), route);
    const Request replace = ReplaceRoute(route);
    EXPECT_EQ(MessageReader(replace.bytes()).Next()->flags,
              NLM_F_REQUEST | NLM_F_CREATE | NLM_F_REPLACE);
  }
}

TEST(ParseRoute, ATunnelThatIsCutShortIsNone) {
  const Request whole = AddRoute(InATunnel(kV4));
  const auto message = MessageReader(whole.bytes()).Next();
  std::vector<uint8_t> bytes(message->payload.begin(), message->payload.end());
  for (; bytes.size() > sizeof(rtmsg); bytes.pop_back()) {
    const auto route = ParseRoute(bytes);
    if (route.ok() && bytes.size() < message->payload.size()) {
      EXPECT_FALSE(route->encapsulation.has_value()) << bytes.size();
    }
  }
}

TEST(DeleteRoute, MatchesAnyScopeAndIsDoneWhenTheRouteIsGone) {
  const Request request = DeleteRoute(HostV4());
  const auto message = MessageReader(request.bytes()).Next();
  EXPECT_EQ(message->type, RTM_DELROUTE);
  EXPECT_EQ(ReadStruct<rtmsg>(message->payload)->rtm_scope, RT_SCOPE_NOWHERE);
  EXPECT_TRUE(request.Tolerates(ESRCH));
}

}  // namespace
}  // namespace spoke::netlink
