// Tests of what needs no kernel; the rest is in tests/netns.
#include "netagent/verification/packet_wire_probe.h"

#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

TEST(NextHop, IsTheAnswererInASubnetOfOursAndElseTheGateway) {
  constexpr ip::Address kNear = ip::Address::V4(0x0A000163);  // 10.0.1.99
  const std::vector<ip::Prefix> subnets = {ip::Prefix::Parse("fd00::/64").value(),
                                           ip::Prefix::Parse("10.0.1.0/24").value()};
  EXPECT_EQ(NextHopTo(kNear, subnets), kNear);
  EXPECT_EQ(NextHopTo(ip::Address::V4(0x0A090909), subnets), ip::Address::V4(0x0A000101));
  EXPECT_EQ(NextHopTo(kNear, {}), kNear);
}

}  // namespace
}  // namespace spoke::netagent
