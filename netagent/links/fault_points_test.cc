#include "netagent/links/fault_points.h"

#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

TEST(ParseFaultPoint, NothingIsInjectedByDefault) {
  const FaultPoint none = ParseFaultPoint("").value();
  EXPECT_FALSE(static_cast<bool>(none));
  EXPECT_TRUE(Reach(none, "attach.pod").ok());
}

TEST(ParseFaultPoint, FailsTheNthTimeAStepIsReachedAndOnlyThen) {
  const FaultPoint fault = ParseFaultPoint("fail attach.pod 2").value();
  const FaultPoint copy = fault;
  EXPECT_TRUE(Reach(fault, "attach.pod").ok());
  EXPECT_TRUE(Reach(fault, "attach.node").ok());
  EXPECT_TRUE(absl::IsInternal(Reach(copy, "attach.pod")));
  EXPECT_TRUE(Reach(fault, "attach.pod").ok());
}

TEST(ParseFaultPoint, AStarIsAnyStep) {
  const FaultPoint fault = ParseFaultPoint("fail * 2").value();
  EXPECT_TRUE(Reach(fault, "attach.pod").ok());
  EXPECT_TRUE(absl::IsInternal(Reach(fault, "attach.node")));
}

TEST(ParseFaultPoint, KillsAsSigkillDoes) {
  EXPECT_EXIT(static_cast<void>(Reach(ParseFaultPoint("kill attach.pod 1").value(), "attach.pod")),
              testing::KilledBySignal(SIGKILL), "");
}

TEST(ParseFaultPoint, RefusesWhatItDoesNotUnderstand) {
  for (const char* text : {"fail", "fail attach.pod", "fail attach.pod 0", "fail attach.pod -1",
                           "fail attach.pod x", "explode attach.pod 1", "fail attach.pod 1 2"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseFaultPoint(text).status())) << text;
  }
}

}  // namespace
}  // namespace spoke::netagent
