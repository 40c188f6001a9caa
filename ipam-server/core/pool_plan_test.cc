#include "ipam-server/core/pool_plan.h"

#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

constexpr TargetPolicy kPolicy{.min = 8, .batch = 16, .spare = 0.5, .max = 100};

TEST(TargetAddresses, KeepsHalfABatchSpareInWholeBatches) {
  EXPECT_EQ(TargetAddresses(kPolicy, 0), 16U);
  EXPECT_EQ(TargetAddresses(kPolicy, 8), 16U);
  EXPECT_EQ(TargetAddresses(kPolicy, 9), 32U);
  EXPECT_EQ(TargetAddresses(kPolicy, 40), 48U);
}

TEST(TargetAddresses, StaysBetweenMinAndMax) {
  EXPECT_EQ(TargetAddresses({.min = 20, .batch = 4, .spare = 0, .max = 100}, 0), 20U);
  EXPECT_EQ(TargetAddresses(kPolicy, 99), 100U);
  EXPECT_EQ(TargetAddresses(kPolicy, 4'000'000'000U), 100U);
}

TEST(TargetAddresses, NeverFallsAsUseRises) {
  for (uint32_t used = 0; used < 300; ++used) {
    EXPECT_LE(TargetAddresses(kPolicy, used), TargetAddresses(kPolicy, used + 1)) << used;
  }
}

}  // namespace
}  // namespace spoke::ipam
