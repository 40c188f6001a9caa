#include "lib/node_checks/facts/uplink.h"

#include <linux/rtnetlink.h>

#include <vector>

#include "gtest/gtest.h"
#include "lib/ip/prefix.h"

namespace spoke::node_checks {
namespace {

using netlink::Route;

Route To(const char* destination, int32_t link, uint32_t metric) {
  return {.destination = *ip::Prefix::Parse(destination), .link = link, .metric = metric};
}

Route Default(int32_t link, uint32_t metric) { return To("0.0.0.0/0", link, metric); }

absl::StatusOr<int32_t> Uplink(const std::vector<Route>& routes) { return UplinkOf(routes); }

TEST(UplinkOf, IsTheDeviceOfTheDefaultRouteWithTheLowestMetric) {
  EXPECT_EQ(*Uplink({To("10.0.0.0/8", 9, 0), Default(3, 200), Default(2, 100), Default(4, 300)}),
            2);
  EXPECT_EQ(*Uplink({To("::/0", 5, 1024)}), 5);
}

TEST(UplinkOf, SeveralRoutesOverOneDeviceLeadThere) {
  EXPECT_EQ(*Uplink({Default(2, 100), Default(2, 100)}), 2);
}

TEST(UplinkOf, NothingElseIsADefaultRoute) {
  Route elsewhere = Default(2, 0);
  elsewhere.table = 100;
  Route refused = Default(2, 0);
  refused.type = RTN_UNREACHABLE;
  EXPECT_TRUE(absl::IsNotFound(Uplink({}).status()));
  EXPECT_TRUE(absl::IsNotFound(Uplink({elsewhere, refused, To("0.0.0.0/1", 2, 0)}).status()));
}

TEST(UplinkOf, DevicesOfOneMetricAreNotGuessedAmong) {
  EXPECT_TRUE(absl::IsFailedPrecondition(Uplink({Default(2, 100), Default(3, 100)}).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(
      Uplink({Default(2, 100), Default(3, 100), Default(2, 100)}).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(Uplink({Default(0, 100)}).status()));
  // What a better route says counts, whatever the others are.
  EXPECT_EQ(*Uplink({Default(2, 100), Default(3, 100), Default(4, 50)}), 4);
  EXPECT_EQ(*Uplink({Default(4, 50), Default(0, 100)}), 4);
}

}  // namespace
}  // namespace spoke::node_checks
