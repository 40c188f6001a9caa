#include "ipam-server/cloud/calls/cloud_plan.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1000);

CallRequest Put(uint64_t id, CloudLane lane = CloudLane::kWarmUp) {
  CallRequest options;
  options.id = id;
  options.kind = CallKind::kPutInstance;
  options.lane = lane;
  options.since = kStart + absl::Milliseconds(id);
  options.subscription = "sub";
  options.region = "eastus2";
  options.resource = "vm" + std::to_string(id);
  return options;
}

std::vector<uint64_t> IdsOf(const std::vector<AdmittedCall>& calls) {
  std::vector<uint64_t> ids;
  for (const AdmittedCall& call : calls) ids.push_back(call.id);
  return ids;
}

TEST(CloudPlan, LanesFirstThenAge) {
  CloudPlan plan({.most_in_flight = 8});
  plan.Add(Put(1, CloudLane::kRelease));
  plan.Add(Put(2, CloudLane::kWarmUp));
  plan.Add(Put(4, CloudLane::kBlocking));
  plan.Add(Put(3, CloudLane::kBlocking));
  EXPECT_THAT(IdsOf(plan.Next(kStart)), testing::ElementsAre(3, 4, 2, 1));
  EXPECT_EQ(plan.in_flight(), 4U);
  EXPECT_THAT(plan.Next(kStart), testing::IsEmpty());
}

TEST(CloudPlan, OnlyTheBlockingLaneUsesTheShareOfOthers) {
  CloudPlan plan({.share_for_others = 0.5, .most_in_flight = 100000});
  for (uint64_t id = 0; id < 1000; ++id) plan.Add(Put(id, CloudLane::kRelease));
  EXPECT_EQ(plan.Next(kStart).size(), 100U);  // Half of the front door's 200.
  for (uint64_t id = 1000; id < 2000; ++id) plan.Add(Put(id, CloudLane::kBlocking));
  EXPECT_EQ(plan.Next(kStart).size(), 100U);
}

TEST(CloudPlan, PrincipalsShareTheLoad) {
  CloudPlan plan({.share_for_others = 0, .principals = 3, .most_in_flight = 100000});
  for (uint64_t id = 0; id < 1000; ++id) plan.Add(Put(id));
  size_t count[3] = {};
  for (const AdmittedCall& call : plan.Next(kStart)) ++count[call.principal];
  EXPECT_THAT(count, testing::Each(200U));
}

TEST(CloudPlan, SaysWhatIsLeftOfEachSharedLimitWhereItIsLeast) {
  CloudPlan plan({.share_for_others = 0, .principals = 2, .most_in_flight = 100000});
  EXPECT_THAT(plan.LimitsLeft(kStart), testing::Each(testing::Pair(testing::_, 1.0)));
  EXPECT_EQ(plan.LimitsLeft(kStart).size(), static_cast<size_t>(kLastLimit) + 1);
  for (uint64_t id = 0; id < 300; ++id) plan.Add(Put(id));
  CallRequest elsewhere = Put(300);
  elsewhere.region = "westeurope";
  plan.Add(elsewhere);
  EXPECT_EQ(plan.Next(kStart).size(), 301U);
  // Both principals' front doors allow 200; the region allows 1,500.
  const auto left = plan.LimitsLeft(kStart);
  EXPECT_NEAR(left.at("subscription-writes"), 49.0 / 200, 1e-6);
  EXPECT_NEAR(left.at("UpdateVMScaleSetVMs"), 1200.0 / 1500, 1e-6);
  EXPECT_EQ(left.at("network writes"), 1);
}

TEST(CloudPlan, WhatIsRemovedNeverGoes) {
  CloudPlan plan({});
  plan.Add(Put(1));
  EXPECT_TRUE(plan.Remove(1));
  EXPECT_FALSE(plan.Remove(1));
  EXPECT_THAT(plan.Next(kStart), testing::IsEmpty());
  EXPECT_EQ(plan.NextWake(), absl::InfiniteFuture());
}

TEST(CloudPlan, OneVmThatWaitsHoldsUpNoOther) {
  CloudPlan plan({.share_for_others = 0});
  for (uint64_t id = 0; id < 20; ++id) {
    CallRequest options = Put(id);
    options.resource = "vm";
    plan.Add(options);
  }
  plan.Add(Put(99));
  EXPECT_EQ(plan.Next(kStart).size(), 13U);
}

CallAnswer Refusal(CallAnswer::Refusal kind, std::vector<std::string> by = {}) {
  CallAnswer answer;
  answer.refusal = kind;
  answer.refused_by = std::move(by);
  answer.retry_after = absl::Seconds(30);
  return answer;
}

TEST(CloudPlan, ARefusedPolicyClosesItsScopeAndNoOther) {
  CloudPlan plan({});
  plan.Add(Put(1));
  plan.Next(kStart);
  plan.Answer(1, Refusal(CallAnswer::Refusal::kPolicy, {"UpdateVMScaleSetVMsSubscriptionMaximum"}),
              kStart, 0);
  plan.Add(Put(2, CloudLane::kBlocking));
  CallRequest elsewhere = Put(3);
  elsewhere.region = "westus";
  plan.Add(elsewhere);
  EXPECT_THAT(IdsOf(plan.Next(kStart)), testing::ElementsAre(3));
  EXPECT_THAT(plan.Next(kStart + absl::Seconds(29)), testing::IsEmpty());
  EXPECT_GE(plan.NextWake(), kStart + absl::Seconds(30));
  EXPECT_THAT(IdsOf(plan.Next(plan.NextWake())), testing::ElementsAre(2));
}

TEST(CloudPlan, AnEmptyHeaderNamesWhatRefusedWhenTheErrorDoesNot) {
  CloudPlan plan({});
  plan.Add(Put(1));
  plan.Next(kStart);
  CallAnswer answer = Refusal(CallAnswer::Refusal::kPolicy);
  answer.policies = {{"UpdateVMScaleSetVMsResource", 0},
                     {"UpdateVMScaleSetVMsSubscriptionMaximum", 1200}};
  plan.Answer(1, answer, kStart, 0);
  plan.Add(Put(2));
  plan.Add(Put(1));
  EXPECT_THAT(IdsOf(plan.Next(kStart)), testing::ElementsAre(2));
}

TEST(CloudPlan, UnknownPoliciesAreKeptAndCloseTheCallsOwnLimit) {
  CloudPlan plan({});
  plan.Add(Put(1));
  plan.Next(kStart);
  CallAnswer answer = Refusal(CallAnswer::Refusal::kPolicy, {"VMScaleSetActions30Min"});
  answer.policies = {{"VMScaleSetActions30Min", 0}};
  plan.Answer(1, answer, kStart, 0);
  EXPECT_EQ(plan.unknown_policies().at("VMScaleSetActions30Min"), 0);
  plan.Add(Put(2, CloudLane::kBlocking));
  EXPECT_THAT(plan.Next(kStart + absl::Seconds(29)), testing::IsEmpty());
}

TEST(CloudPlan, TheFrontDoorClosesForOnePrincipal) {
  CloudPlan plan({.principals = 2});
  plan.Add(Put(1));
  const auto first = plan.Next(kStart);
  plan.Answer(1, Refusal(CallAnswer::Refusal::kFrontDoor), kStart, 0);
  plan.Add(Put(2));
  const auto second = plan.Next(kStart);
  ASSERT_EQ(second.size(), 1U);
  EXPECT_NE(first[0].principal, second[0].principal);
}

TEST(CloudPlan, AnotherOperationClosesTheResourceOnly) {
  CloudPlan plan({});
  plan.Add(Put(1));
  plan.Next(kStart);
  plan.Answer(1, Refusal(CallAnswer::Refusal::kResource), kStart, 0);
  plan.Add(Put(1));
  plan.Add(Put(2));
  EXPECT_THAT(IdsOf(plan.Next(kStart)), testing::ElementsAre(2));
  EXPECT_THAT(IdsOf(plan.Next(kStart + absl::Seconds(31))), testing::ElementsAre(1));
}

TEST(CloudPlan, NothingPassesAParkedScope) {
  CloudPlan plan({});
  CallRequest options = Put(1, CloudLane::kBlocking);
  options.gates = {"subnet"};
  plan.Add(options);
  const absl::Time until = plan.Park("subnet", kSubnetFullPark, "subnet pods is full", kStart, 0);
  EXPECT_EQ(until, kStart + absl::Minutes(2));
  EXPECT_THAT(plan.Next(kStart), testing::IsEmpty());
  EXPECT_EQ(plan.ParkedAt("subnet", kStart)->why, "subnet pods is full");
  EXPECT_EQ(plan.NextWake(), until);
  EXPECT_EQ(plan.Next(until).size(), 1U);
}

TEST(CloudPlan, ReadsDoNotRunFarAheadOfWrites) {
  CloudPlan plan({.most_in_flight = 1000});
  for (uint64_t id = 0; id < 300; ++id) {
    CallRequest options = Put(id);
    options.kind = CallKind::kGetInstance;
    options.prepares_write = true;
    plan.Add(options);
  }
  const std::vector<AdmittedCall> reads = plan.Next(kStart);
  EXPECT_EQ(reads.size(), 64U);
  for (const AdmittedCall& read : reads) {
    plan.Answer(read.id, {}, kStart, 0);
    CallRequest write = Put(1000 + read.id);
    write.not_before = kStart + absl::Seconds(1);  // Parked writes do not count.
    plan.Add(write);
  }
  EXPECT_EQ(plan.Next(kStart).size(), 64U);
}

TEST(CloudPlan, ThrottlesOfResourcesAtRestAreForgotten) {
  CloudPlan plan({.most_in_flight = 1000});
  for (uint64_t id = 0; id < 100; ++id) plan.Add(Put(id));
  for (const AdmittedCall& call : plan.Next(kStart)) plan.Answer(call.id, {}, kStart, 0);
  EXPECT_GT(plan.throttles(), 100U);
  plan.Next(kStart + absl::Minutes(30));
  EXPECT_EQ(plan.throttles(), 0U);
}

TEST(CloudPlan, ThePaceIsThatOfTheTightestLimit) {
  CloudPlan plan({.share_for_others = 0});
  const CallPace pace =
      plan.PaceOf(CallKind::kPutInstance, CloudLane::kWarmUp, "sub", "eastus2", kStart);
  EXPECT_NEAR(pace.per_second, 500.0 / 60, 0.01);
  EXPECT_NEAR(pace.ready, 200, 0.01);
  EXPECT_EQ(pace.limit, "Azure's limit UpdateVMScaleSetVMs of subscription sub in eastus2");
}

}  // namespace
}  // namespace spoke::ipam
