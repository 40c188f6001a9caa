#include "netagent/egress/gateways/gateway_health.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

constexpr ip::Address kA = ip::Address::V4(0x0A010064);
constexpr ip::Address kB = ip::Address::V4(0x0A010065);

TEST(GatewayHealth, ANewOneCountsUntilItsFirstAnswer) {
  GatewayHealth health;
  health.SetTargets({kA, kB});
  EXPECT_THAT(health.Healthy(), testing::ElementsAre(kA, kB));
  EXPECT_TRUE(health.OnResult(kA, false));
  EXPECT_FALSE(health.OnResult(kB, true));
  EXPECT_THAT(health.Healthy(), testing::ElementsAre(kB));
}

TEST(GatewayHealth, ThreeFailuresInARowTakeOutAndTwoSuccessesTakeIn) {
  GatewayHealth health;
  health.SetTargets({kA});
  health.OnResult(kA, true);
  for (const bool works : {false, false, true, false, false}) {
    EXPECT_FALSE(health.OnResult(kA, works));
  }
  EXPECT_TRUE(health.OnResult(kA, false));
  EXPECT_TRUE(health.Healthy().empty());
  for (const bool works : {true, false, true}) EXPECT_FALSE(health.OnResult(kA, works));
  EXPECT_TRUE(health.OnResult(kA, true));
  EXPECT_THAT(health.Healthy(), testing::ElementsAre(kA));
}

TEST(GatewayHealth, TargetsKeepWhatIsKnownOfThem) {
  GatewayHealth health;
  health.SetTargets({kA});
  health.OnResult(kA, false);
  health.SetTargets({kA, kB});
  EXPECT_THAT(health.Healthy(), testing::ElementsAre(kB));
  health.SetTargets({kB});
  EXPECT_FALSE(health.OnResult(kA, true)) << "nobody asks any more";
}

}  // namespace
}  // namespace spoke::netagent
