#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "lib/netlink/message.h"
#include "lib/netlink/network_layer.h"
#include "lib/netlink/testing/recorded_messages.h"

namespace spoke::netlink {
namespace {

constexpr ip::Address kV4 = ip::Address::V4(0x0A000107);
constexpr ip::Address kV6 = ip::Address::V6(0xFD00'0000'0000'0000, 7);

TEST(ParseAddress, ReadsBothFamiliesAsTheKernelSentThem) {
  const auto v4 = ParseAddress(FromHex(kAddressV4));
  ASSERT_TRUE(v4.ok()) << v4.status();
  EXPECT_EQ(*v4, (LinkAddress{78, kV4, 32, RT_SCOPE_UNIVERSE, IFA_F_PERMANENT}));
  const auto v6 = ParseAddress(FromHex(kAddressV6));
  ASSERT_TRUE(v6.ok()) << v6.status();
  EXPECT_EQ(*v6, (LinkAddress{78, kV6, 128, RT_SCOPE_UNIVERSE, IFA_F_PERMANENT | IFA_F_NODAD}));
}

TEST(ParseAddress, SurvivesDamage) {
  ExpectSurvivesDamage(kAddressV4, &ParseAddress);
  ExpectSurvivesDamage(kAddressV6, &ParseAddress);
}

TEST(ParseAddress, TakesTheDevicesOwnEndOfAPointToPointLink) {
  ifaddrmsg fixed{};
  fixed.ifa_family = AF_INET;
  Request request("try", RTM_NEWADDR, 0, fixed);
  request.PutAddress(IFA_LOCAL, kV4).PutAddress(IFA_ADDRESS, ip::Address::V4(0x0A0000FE));
  const auto address = ParseAddress(MessageReader(request.bytes()).Next()->payload);
  ASSERT_TRUE(address.ok()) << address.status();
  EXPECT_EQ(address->address, kV4);
}

TEST(ParseAddress, RefusesOtherFamiliesAndNoAddress) {
  ifaddrmsg fixed{};
  fixed.ifa_family = AF_PACKET;
  const Request packet("try", RTM_NEWADDR, 0, fixed);
  EXPECT_TRUE(
      absl::IsDataLoss(ParseAddress(MessageReader(packet.bytes()).Next()->payload).status()));
  fixed.ifa_family = AF_INET;
  const Request empty("try", RTM_NEWADDR, 0, fixed);
  EXPECT_TRUE(
      absl::IsDataLoss(ParseAddress(MessageReader(empty.bytes()).Next()->payload).status()));
}

TEST(AddAddress, IsReadBackAsItWasAsked) {
  for (const ip::Address& address : {kV4, kV6}) {
    const Request request = AddAddress(78, address);
    const auto message = MessageReader(request.bytes()).Next();
    EXPECT_EQ(message->flags, NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL);
    const auto parsed = ParseAddress(message->payload);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    const uint32_t flags = address.is_v4() ? 0 : IFA_F_NODAD;
    EXPECT_EQ(*parsed, (LinkAddress{78, address, address.bits(), RT_SCOPE_UNIVERSE, flags}));
  }
}

}  // namespace
}  // namespace spoke::netlink
