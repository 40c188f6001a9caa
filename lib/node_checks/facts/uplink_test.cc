#include "lib/node_checks/facts/uplink.h"

#include <vector>

#include "gtest/gtest.h"

namespace spoke::node_checks {
namespace {

absl::StatusOr<int32_t> Choose(const std::vector<DefaultRoute>& routes) {
  return ChooseUplink(routes);
}

TEST(ChooseUplink, TakesTheDeviceOfTheRouteWithTheLowestMetric) {
  EXPECT_EQ(*Choose({{3, 200}, {2, 100}, {4, 300}}), 2);
  EXPECT_EQ(*Choose({{5, 1024}}), 5);
}

TEST(ChooseUplink, SeveralRoutesOverOneDeviceLeadThere) {
  EXPECT_EQ(*Choose({{2, 100}, {2, 100}}), 2);
}

TEST(ChooseUplink, NoRouteIsNoDevice) { EXPECT_TRUE(absl::IsNotFound(Choose({}).status())); }

TEST(ChooseUplink, DevicesOfOneMetricAreNotGuessedAmong) {
  EXPECT_TRUE(absl::IsFailedPrecondition(Choose({{2, 100}, {3, 100}}).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(Choose({{2, 100}, {3, 100}, {2, 100}}).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(Choose({{0, 100}}).status()));
  // What a better route says counts, whatever the others are.
  EXPECT_EQ(*Choose({{2, 100}, {3, 100}, {4, 50}}), 4);
  EXPECT_EQ(*Choose({{4, 50}, {0, 100}}), 4);
}

}  // namespace
}  // namespace spoke::node_checks
