#include "lib/nft/ruleset.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::nft {
namespace {

using ::testing::ElementsAre;

TEST(RulesetBytes, AddressesAndPortsStandAsInAPacket) {
  EXPECT_THAT(NetworkOrder(ip::Address::V4(0x0A000102)), ElementsAre(10, 0, 1, 2));
  EXPECT_THAT(NetworkOrder(uint16_t{443}), ElementsAre(1, 187));
  EXPECT_EQ(NetworkOrder(ip::Address::V6(1, 2)).size(), 16U);
}

TEST(RulesetBytes, ADeviceNameIsPaddedAndCutToTheKernelsLength) {
  EXPECT_THAT(DeviceName("lo"), ElementsAre('l', 'o', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_EQ(DeviceName("a-name-that-is-too-long").back(), 0);
}

TEST(RulesetBytes, EachPartOfAKeyBeginsARegister) {
  EXPECT_THAT(Join({NetworkOrder(uint16_t{80}), NetworkOrder(ip::Address::V4(0x0A000102))}),
              ElementsAre(0, 80, 0, 0, 10, 0, 1, 2));
  EXPECT_THAT(Join({}), ElementsAre());
}

}  // namespace
}  // namespace spoke::nft
