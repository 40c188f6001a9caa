#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "lib/netlink/message.h"
#include "lib/netlink/network_layer.h"
#include "lib/netlink/testing/recorded_messages.h"

namespace spoke::netlink {
namespace {

constexpr ip::MacAddress kMac{{0x0e, 0x11, 0x22, 0x33, 0x44, 0x55}};
constexpr ip::Address kV4 = ip::Address::V4(0x0A000109);
constexpr ip::Address kV6 = ip::Address::V6(0xFD00'0000'0000'0000, 9);

TEST(ParseNeighbour, ReadsBothFamiliesAsTheKernelSentThem) {
  EXPECT_EQ(ParseNeighbour(FromHex(kNeighbourV4)).value(),
            (Neighbour{77, kV4, kMac, NUD_PERMANENT}));
  EXPECT_EQ(ParseNeighbour(FromHex(kNeighbourV6)).value(),
            (Neighbour{77, kV6, kMac, NUD_PERMANENT}));
}

TEST(ParseNeighbour, SurvivesDamage) {
  ExpectSurvivesDamage(kNeighbourV4, &ParseNeighbour);
  ExpectSurvivesDamage(kNeighbourV6, &ParseNeighbour);
}

TEST(ParseNeighbour, RefusesTheBridgesAndOnesWithoutAnAddress) {
  ndmsg fixed{};
  fixed.ndm_family = AF_BRIDGE;
  const Request bridge("try", RTM_NEWNEIGH, 0, fixed);
  EXPECT_TRUE(
      absl::IsDataLoss(ParseNeighbour(MessageReader(bridge.bytes()).Next()->payload).status()));
  fixed.ndm_family = AF_INET;
  const Request empty("try", RTM_NEWNEIGH, 0, fixed);
  EXPECT_TRUE(
      absl::IsDataLoss(ParseNeighbour(MessageReader(empty.bytes()).Next()->payload).status()));
}

TEST(SetPermanentNeighbour, IsReadBackAsItWasAsked) {
  for (const ip::Address& address : {kV4, kV6}) {
    const Request request = SetPermanentNeighbour(77, address, kMac);
    EXPECT_EQ(ParseNeighbour(MessageReader(request.bytes()).Next()->payload).value(),
              (Neighbour{77, address, kMac, NUD_PERMANENT}));
  }
}

}  // namespace
}  // namespace spoke::netlink
