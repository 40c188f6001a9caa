#include "ipam-server/policy/objects/pool_range.h"

#include <ostream>
#include <string>

#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

struct Case {
  const char* name;
  const char* cidr;
  uint32_t reserve_first;
  uint32_t reserve_last;
  uint32_t block_length;
  const char* want;  // "FIRST-LAST", or "" for none.
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

class UsableRangeTest : public testing::TestWithParam<Case> {};

TEST_P(UsableRangeTest, IsWhatTheReservedLeave) {
  const Case& c = GetParam();
  const auto cidr = ip::Prefix::Parse(c.cidr);
  ASSERT_TRUE(cidr.ok()) << cidr.status();
  PoolSpec spec;
  spec.cidr = *cidr;
  spec.reserve_first = c.reserve_first;
  spec.reserve_last = c.reserve_last;
  spec.block_length = c.block_length;
  const auto range = UsableRange(spec);
  EXPECT_EQ(range ? range->first.ToString() + "-" + range->last.ToString() : "", c.want);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, UsableRangeTest,
    testing::Values(
        Case{"Azure", "10.1.0.0/24", 4, 1, 0, "10.1.0.4-10.1.0.254"},
        Case{"NothingReserved", "10.1.0.0/24", 0, 0, 0, "10.1.0.0-10.1.0.255"},
        Case{"OneAddress", "10.1.0.7/32", 0, 0, 0, "10.1.0.7-10.1.0.7"},
        Case{"OneLeft", "10.1.0.0/29", 4, 3, 0, "10.1.0.4-10.1.0.4"},
        Case{"NoneLeft", "10.1.0.0/29", 4, 4, 0, ""},
        Case{"TheWholeSpace", "0.0.0.0/0", 4, 1, 0, "0.0.0.4-255.255.255.254"},
        Case{"V6", "fd00::/64", 4, 1, 0, "fd00::4-fd00::ffff:ffff:ffff:fffe"},
        Case{"LargeV6", "fd00::/8", 4, 1, 0, "fd00::4-fdff:ffff:ffff:ffff:ffff:ffff:ffff:fffe"},
        Case{"SmallV6", "fd00::10/124", 4, 1, 0, "fd00::14-fd00::1e"},
        Case{"Blocks", "10.1.0.0/24", 4, 1, 28, "10.1.0.16-10.1.0.239"},
        Case{"BlocksWithNothingReserved", "10.1.0.0/24", 0, 0, 28, "10.1.0.0-10.1.0.255"},
        Case{"BlocksWithWholeOnesReserved", "10.1.0.0/24", 16, 16, 28, "10.1.0.16-10.1.0.239"},
        Case{"NoWholeBlock", "10.1.0.0/27", 1, 1, 28, ""},
        Case{"OneWholeBlock", "10.1.0.0/27", 1, 0, 28, "10.1.0.16-10.1.0.31"},
        Case{"BlocksOfTheTopOfTheSpace", "255.255.255.224/27", 0, 1, 28,
             "255.255.255.224-255.255.255.239"},
        Case{"BlocksOfTheTopReservedFromBelow", "255.255.255.224/27", 17, 0, 28, ""},
        Case{"BlockAsLargeAsThePool", "10.1.0.0/28", 0, 0, 28, ""},
        Case{"BlockLongerThanAnAddress", "10.1.0.0/24", 0, 0, 33, ""},
        Case{"LargeV6Blocks", "fd00::/32", 4, 1, 48,
             "fd00:0:1::-fd00:0:fffe:ffff:ffff:ffff:ffff:ffff"},
        Case{"V6Blocks", "fd00::/64", 4, 1, 80, "fd00::1:0:0:0-fd00::fffe:ffff:ffff:ffff"}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace spoke::ipam
