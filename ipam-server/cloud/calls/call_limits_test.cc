#include "ipam-server/cloud/calls/call_limits.h"

#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

TEST(CallLimits, EveryCallMeetsTheFrontDoorLastAndALimitOfItsRegion) {
  for (int i = 0; i <= static_cast<int>(CallKind::kListNics); ++i) {
    const auto kind = static_cast<CallKind>(i);
    const auto& limits = LimitsOf(kind);
    ASSERT_GE(limits.size(), 2U) << NameOf(kind);
    EXPECT_EQ(limits.back().scope, LimitScope::kPrincipal) << NameOf(kind);
    EXPECT_EQ(limits.at(limits.size() - 2).scope, LimitScope::kRegion) << NameOf(kind);
    for (const ScopedLimit& limit : limits) EXPECT_GE(RateOf(limit).capacity, 12);
  }
}

TEST(CallLimits, NamesOfPoliciesSayWhatTheyCount) {
  EXPECT_EQ(LimitNamed("UpdateVMScaleSetVMsResource"),
            (ScopedLimit{Limit::kUpdateInstances, LimitScope::kResource}));
  EXPECT_EQ(LimitNamed("getoperationsubscriptionmaximum"),
            (ScopedLimit{Limit::kComputeOperations, LimitScope::kRegion}));
  EXPECT_EQ(LimitNamed("GetVMScaleSetVM3Min"), std::nullopt);
  EXPECT_EQ(LimitNamed("HighCostGetVMResource"), std::nullopt);  // It counts by subscription only.
  EXPECT_EQ(LimitNamed(""), std::nullopt);
}

}  // namespace
}  // namespace spoke::ipam
