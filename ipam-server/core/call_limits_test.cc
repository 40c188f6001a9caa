#include "ipam-server/core/call_limits.h"

#include "gmock/gmock.h"
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
  EXPECT_EQ(LimitNamed("HighCostGetVMResource"), std::nullopt);  // Counted by subscription only.
  EXPECT_EQ(LimitNamed(""), std::nullopt);
}

TEST(CallLimits, ReadsHeadersOfBothModels) {
  EXPECT_THAT(ParsePolicyBudgets("Microsoft.Compute/GetOperationResource;44, "
                                 "Microsoft.Compute/GetOperationSubscriptionMaximum;14999"),
              testing::ElementsAre(PolicyBudget{"GetOperationResource", 44},
                                   PolicyBudget{"GetOperationSubscriptionMaximum", 14999}));
  EXPECT_THAT(ParsePolicyBudgets("Microsoft.Compute/VMScaleSetActions3Min;239"),
              testing::ElementsAre(PolicyBudget{"VMScaleSetActions3Min", 239}));
}

TEST(CallLimits, SkipsWhatIsNotABudget) {
  EXPECT_THAT(ParsePolicyBudgets(""), testing::IsEmpty());
  EXPECT_THAT(ParsePolicyBudgets(",;,a,;5,a;,a;b,a;nan,a;inf,Microsoft.Compute/;1"),
              testing::IsEmpty());
  EXPECT_THAT(ParsePolicyBudgets("x,b;2"), testing::ElementsAre(PolicyBudget{"b", 2}));
}

}  // namespace
}  // namespace spoke::ipam
