#include "tests/azure-sim/throttle.h"

#include "tests/azure-sim/model_for_test.h"

namespace spoke::azure_sim {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'800'000'000);  // The start is a whole minute.

// The example in Microsoft's description of Compute's limits.
TEST(Throttle, RefillsAStepEachMinuteAsDocumented) {
  Limits limits;
  limits[Policy::kUpdateScaleSetVms] = {{4, 12}, {500, 1500}};
  Throttle throttle(limits);
  const int requests[] = {0, 8, 0, 13, 5, 0};
  const int throttled[] = {0, 0, 0, 1, 1, 0};
  for (size_t minute = 0; minute < std::size(requests); ++minute) {
    int refused = 0;
    for (int i = 0; i < requests[minute]; ++i) {
      const absl::Time now =
          kStart + absl::Minutes(static_cast<int>(minute)) + absl::Milliseconds(i);
      if (!throttle.AskProvider(Policy::kUpdateScaleSetVms, {"s", "r", "vm"}, 1, now).allowed) {
        ++refused;
      }
    }
    EXPECT_EQ(refused, throttled[minute]) << "in minute " << minute;
  }
}

TEST(Throttle, NothingComesBackWithinTheMinuteAndThePhaseSaysWhenItEnds) {
  Limits limits;
  limits.compute_phase = absl::Seconds(20);
  limits[Policy::kUpdateScaleSetVms] = {{1, 1}, {}};
  Throttle throttle(limits);
  const Throttle::Scope vm{"s", "r", "vm"};
  EXPECT_TRUE(throttle.AskProvider(Policy::kUpdateScaleSetVms, vm, 1, kStart).allowed);
  const Grant refused =
      throttle.AskProvider(Policy::kUpdateScaleSetVms, vm, 1, kStart + absl::Seconds(1));
  EXPECT_FALSE(refused.allowed);
  EXPECT_EQ(refused.limit, "UpdateVMScaleSetVMsResource");
  EXPECT_EQ(refused.retry_after, absl::Seconds(19));
  EXPECT_FALSE(
      throttle.AskProvider(Policy::kUpdateScaleSetVms, vm, 1, kStart + absl::Seconds(19)).allowed);
  EXPECT_TRUE(
      throttle.AskProvider(Policy::kUpdateScaleSetVms, vm, 1, kStart + absl::Seconds(20)).allowed);
}

TEST(Throttle, CountsWhoDoesNotWait) {
  Limits limits;
  limits[Policy::kUpdateScaleSetVms] = {{1, 1}, {}};
  Throttle throttle(limits);
  const Throttle::Scope vm{"s", "r", "vm"};
  throttle.AskProvider(Policy::kUpdateScaleSetVms, vm, 1, kStart);
  throttle.AskProvider(Policy::kUpdateScaleSetVms, vm, 1, kStart);
  EXPECT_EQ(throttle.sent_into_closed_gate(), 0);
  throttle.AskProvider(Policy::kUpdateScaleSetVms, vm, 1, kStart + absl::Seconds(30));
  EXPECT_EQ(throttle.sent_into_closed_gate(), 1);
  throttle.AskProvider(Policy::kUpdateScaleSetVms, vm, 1, kStart + absl::Seconds(60));
  EXPECT_EQ(throttle.sent_into_closed_gate(), 1);
}

TEST(Throttle, CountsACallOnceHoweverManyGatesItRunsInto) {
  Limits limits;
  limits[Policy::kUpdateScaleSetVms] = {{1, 1}, {1, 1}};
  Throttle throttle(limits);
  const Throttle::Scope vm{"s", "r", "vm"};
  for (int i = 0; i < 3; ++i) throttle.AskProvider(Policy::kUpdateScaleSetVms, vm, 1, kStart);
  EXPECT_EQ(throttle.sent_into_closed_gate(), 1);
  for (int i = 0; i < 202; ++i) throttle.AskFrontDoor("s", "a", Direction::kWrite, kStart);
  EXPECT_EQ(throttle.sent_into_closed_gate(), 2);
}

TEST(Throttle, AResourceSharesItsSubscriptionsLimit) {
  Limits limits;
  limits[Policy::kUpdateScaleSetVms] = {{4, 12}, {1, 3}};
  Throttle throttle(limits);
  int allowed = 0;
  for (const char* vm : {"a", "b", "c", "d", "e"}) {
    allowed += throttle.AskProvider(Policy::kUpdateScaleSetVms, {"s", "r", vm}, 1, kStart).allowed;
  }
  EXPECT_EQ(allowed, 3);
  // Another region, and another subscription, have limits of their own.
  EXPECT_TRUE(
      throttle.AskProvider(Policy::kUpdateScaleSetVms, {"s", "r2", "f"}, 1, kStart).allowed);
  EXPECT_TRUE(throttle.AskProvider(Policy::kUpdateScaleSetVms, {"t", "r", "g"}, 1, kStart).allowed);
}

TEST(Throttle, NetworkCountsInWindows) {
  Limits limits;
  limits[Policy::kNetworkWrite].subscription = {2, 2};
  Throttle throttle(limits);
  const Throttle::Scope scope{"s", "r", ""};
  EXPECT_TRUE(throttle.AskProvider(Policy::kNetworkWrite, scope, 1, kStart).allowed);
  EXPECT_TRUE(throttle.AskProvider(Policy::kNetworkWrite, scope, 1, kStart).allowed);
  EXPECT_FALSE(
      throttle.AskProvider(Policy::kNetworkWrite, scope, 1, kStart + absl::Minutes(4)).allowed);
  EXPECT_TRUE(
      throttle.AskProvider(Policy::kNetworkWrite, scope, 1, kStart + absl::Minutes(5)).allowed);
}

TEST(Throttle, TheFrontDoorFillsContinuouslyAndHoldsPrincipalsApart) {
  Limits limits;
  Throttle throttle(limits);
  int allowed = 0;
  for (int i = 0; i < 300; ++i) {
    allowed += throttle.AskFrontDoor("s", "a", Direction::kWrite, kStart).allowed;
  }
  EXPECT_EQ(allowed, 200);
  EXPECT_TRUE(throttle.AskFrontDoor("s", "b", Direction::kWrite, kStart).allowed);
  EXPECT_TRUE(throttle.AskFrontDoor("s", "a", Direction::kRead, kStart).allowed);
  // A client that calls early is refused though there is something to take, and told anew.
  const absl::Time early = kStart + absl::Milliseconds(500);
  EXPECT_FALSE(throttle.AskFrontDoor("s", "a", Direction::kWrite, early).allowed);
  EXPECT_FALSE(
      throttle.AskFrontDoor("s", "a", Direction::kWrite, kStart + absl::Seconds(1)).allowed);
  EXPECT_TRUE(
      throttle.AskFrontDoor("s", "a", Direction::kWrite, kStart + absl::Seconds(3)).allowed);
}

class ThrottledModelTest : public ModelTest {
 protected:
  void SetUp() override {
    Make(2);
    model_->knobs().limits[Policy::kGetScaleSetVms].resource = {1, 2};
  }
  http::Response GetUntilRefused() {
    for (int i = 0; i < 2; ++i) EXPECT_EQ(Get(InstancePath(0)).status, 200);
    return Get(InstancePath(0));
  }
};

TEST_F(ThrottledModelTest, ARefusalSaysWhichLimitAndWhenToComeBack) {
  const http::Response refused = GetUntilRefused();
  ASSERT_EQ(refused.status, 429);
  EXPECT_EQ(refused.headers.Find("Retry-After"), "60");
  const Json body = Json::parse(refused.body);
  EXPECT_EQ(body["error"]["code"], "OperationNotAllowed");
  EXPECT_EQ(body["error"]["details"][0]["target"], "GetVMScaleSetVMsResource");
  const Json inner =
      Json::parse(body["error"]["details"][0]["message"].get<std::string>(), nullptr, false);
  EXPECT_EQ(inner["measuredRequestCount"], 3);
  EXPECT_EQ(Get(InstancePath(1)).status, 200);  // Another VM has its own limit.
  EXPECT_EQ(model_->counters().throttled, 1);
  EXPECT_EQ(model_->counters().Of("instance.get", 429), 1);
  now_ += absl::Minutes(1);
  EXPECT_EQ(Get(InstancePath(0)).status, 200);
}

TEST_F(ThrottledModelTest, RetryAfterCanBeADateOrAbsentAndTheBodyBare) {
  model_->knobs().retry_after = RetryAfter::kHttpDate;
  model_->knobs().throttle_without_error = true;
  const http::Response dated = GetUntilRefused();
  EXPECT_EQ(dated.headers.Find("Retry-After"), "Fri, 15 Jan 2027 08:01:00 GMT");
  EXPECT_EQ(Json::parse(dated.body)["code"], "OperationNotAllowed");
  model_->knobs().retry_after = RetryAfter::kAbsent;
  EXPECT_FALSE(Get(InstancePath(0)).headers.Find("Retry-After").has_value());
}

TEST_F(ThrottledModelTest, WhatIsLeftIsInOneHeaderOrInSeveral) {
  constexpr const char* kHeader = "x-ms-ratelimit-remaining-resource";
  const http::Response joined = Get(InstancePath(0));
  ASSERT_EQ(joined.headers.FindAll(kHeader).size(), 1);
  EXPECT_EQ(joined.headers.Find(kHeader),
            "Microsoft.Compute/GetVMScaleSetVMsSubscriptionMaximum;5999,"
            "Microsoft.Compute/GetVMScaleSetVMsResource;1");
  model_->knobs().repeat_headers = true;
  EXPECT_EQ(Get(InstancePath(0)).headers.FindAll(kHeader).size(), 2);
  EXPECT_EQ(joined.headers.Find("x-ms-ratelimit-remaining-subscription-reads"), "249");
}

TEST_F(ThrottledModelTest, TheFrontDoorSpeaksOfTheSubscription) {
  model_->knobs().limits.reads = {1, 1};
  Get(InstancePath(1));
  const http::Response refused = Get(InstancePath(1));
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(CodeOf(refused), "SubscriptionRequestsThrottled");
  EXPECT_EQ(refused.headers.Find("Retry-After"), "1");
}

TEST_F(ThrottledModelTest, LimitsCanBeSwitchedOff) {
  model_->knobs().limits.enabled = false;
  for (int i = 0; i < 500; ++i) ASSERT_EQ(Get(InstancePath(0)).status, 200);
}

}  // namespace
}  // namespace spoke::azure_sim
