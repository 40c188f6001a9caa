#include "ipam-server/pools/pool_plan.h"

#include <algorithm>

#include "gtest/gtest.h"
#include "tests/support/random_seed.h"

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

TEST(TargetAddresses, WhatIsReservedComesOnTopOfTheMaximum) {
  EXPECT_EQ(TargetAddresses(kPolicy, 8, 27), 43U);
  EXPECT_EQ(TargetAddresses(kPolicy, 99, 27), 127U);
}

TEST(TargetAddresses, NoNicIsAskedForMoreThanItHolds) {
  EXPECT_EQ(TargetAddresses(kPolicy, 99, 27, 120), 120U);
  EXPECT_EQ(TargetAddresses(kPolicy, 0, 0, 4), 4U);
  EXPECT_EQ(TargetAddresses(kPolicy, 0, 4'000'000'000U, 255), 255U);
}

TEST(TargetAddresses, ATenthOfABatchIsNotRoundedIntoAWholeOne) {
  // 0.1 * 30 is a little more than 3 in binary.
  EXPECT_EQ(TargetAddresses({.min = 0, .batch = 30, .spare = 0.1, .max = 300}, 27), 30U);
}

TEST(TargetAddresses, ObeysItsFormulaForAnyPolicy) {
  testing_support::Random random;
  for (int i = 0; i < testing_support::kRandomCases; ++i) {
    const auto min = static_cast<uint32_t>(random.Between(0, 64));
    // Sixteenths of a batch, and addresses below 2^16, so that the oracle is exact.
    const auto batch = static_cast<uint32_t>(random.Between(1, 64));
    const auto spare16 = random.Between(0, 48);
    const TargetPolicy policy{.min = min,
                              .batch = batch,
                              .spare = static_cast<double>(spare16) / 16,
                              .max = min + static_cast<uint32_t>(random.Between(0, 300))};
    const auto used = static_cast<uint32_t>(random.Between(0, 400));
    const auto reserved = static_cast<uint32_t>(random.OneIn(2) ? 0 : random.Between(0, 100));
    const auto cap = static_cast<uint32_t>(random.OneIn(2) ? kNoCap : random.Between(0, 300));
    const uint32_t target = TargetAddresses(policy, used, reserved, cap);

    // The smallest whole number of batches that is at least spare + used / batch.
    uint64_t batches = 0;
    while (batches * batch * 16 < spare16 * batch + uint64_t{used} * 16) ++batches;
    const uint64_t own = std::clamp<uint64_t>(batches * batch, policy.min, policy.max);
    ASSERT_EQ(target, std::min<uint64_t>(own + reserved, cap))
        << "min " << min << " batch " << batch << " spare " << policy.spare << " max " << policy.max
        << " used " << used << " reserved " << reserved << " cap " << cap;
    ASSERT_LE(target, TargetAddresses(policy, used + 1, reserved, cap));
    ASSERT_LE(target, TargetAddresses(policy, used, reserved + 1, cap));
  }
}

}  // namespace
}  // namespace spoke::ipam
