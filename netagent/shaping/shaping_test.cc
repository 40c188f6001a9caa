#include "netagent/shaping/shaping.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lib/os/clock.h"
#include "lib/policy/testing/blocks.h"
#include "netagent/session/testing/fake_server_link.h"
#include "netagent/shaping/testing/fake_shaper.h"
#include "tests/support/recording_log.h"

namespace spoke::netagent {
namespace {

using units::BitRate;
using units::ByteCount;
using units::ByteRate;

constexpr BitRate kMbit{1'000'000};
constexpr uint32_t kLink = 11;

policy::Entry Entry(std::string key, decltype(policy::Entry::value) value) {
  return {.key = std::move(key), .bytes = {}, .value = std::move(value)};
}

Policy PolicyOf(std::vector<policy::Entry> entries) {
  Policy policy{.version = 1};
  for (policy::Entry& entry : entries) policy.entries.emplace(entry.key, std::move(entry));
  return policy;
}

policy::Entry Limit(BitRate ingress) {
  return Entry("BandwidthLimit/all", policy::BandwidthLimit{.pod_ingress = ingress});
}

policy::Entry Budget(bool shadow = false) {
  return Entry("BandwidthBudget/web", policy::BandwidthBudget{.teams = {},
                                                              .floor = 2 * kMbit,
                                                              .refresh = absl::Seconds(5),
                                                              .hold = absl::Seconds(300),
                                                              .half_life = absl::Seconds(30),
                                                              .shadow = shadow});
}

TrafficPod Pod(uint32_t index = kLink) {
  return {.host_link = "spk" + std::to_string(index),
          .host_index = index,
          .addresses = {ip::Address::V4(0x0A280000 + index)},
          .pod_namespace = "default",
          .pod_name = "p" + std::to_string(index),
          .pod_uid = {},
          .mtu = 1500};
}

class ShapingTest : public testing::Test {
 protected:
  ShapingTest() { Build(); }

  // Builds the agent anew, with the kernel as it is.
  void Build() {
    shaping_ =
        std::make_unique<Shaping>(Shaping::Edges{.shaper = shaper_,
                                                 .server = server_,
                                                 .clock = clock_,
                                                 .log = log_,
                                                 .monotonic =
                                                     [this] {
                                                       const auto plans = shaper_.applied();
                                                       return clock_.Now() + plan_takes_ * plans;
                                                     },
                                                 .random = [] { return uint64_t{500}; }});
  }

  absl::Status Put(std::vector<policy::Entry> entries) {
    const Policy policy = PolicyOf(std::move(entries));
    auto classes = ClassMap::Compile(policy, {});
    EXPECT_TRUE(classes.ok()) << classes.status();
    return shaping_->OnPolicy(policy, *classes);
  }

  // Runs rounds of the agent's loop for so long.
  void Run(absl::Duration time) {
    const absl::Time end = clock_.Now() + time;
    while (clock_.Now() < end) {
      clock_.Advance(absl::Milliseconds(100));
      shaping_->Tick();
    }
  }

  TrafficPod LimitedPod(uint32_t index = kLink) {
    TrafficPod pod = Pod(index);
    pod.bandwidth = {.egress_rate = 80 * kMbit};
    return pod;
  }
  // Returns the rates of the classes of pods' whole links, in the order of their links.
  std::vector<ByteRate> LinkRates() const {
    std::vector<ByteRate> rates;
    for (const ShapedFlow& flow : shaper_.tables().flows) {
      if (flow.scope != kWholeLink) continue;
      for (const ShapeClass& one : shaper_.tables().trees[1]) {
        if (one.id == flow.class_id) rates.push_back(one.ceil);
      }
    }
    return rates;
  }

  // Returns the rate of the only leaf towards the pod; zero: there is none.
  ByteRate LeafRate() const {
    for (const ShapedFlow& flow : shaper_.tables().flows) {
      if (flow.direction != TrafficDirection::kIngress) continue;
      for (const ShapeClass& one : shaper_.tables().trees[0]) {
        if (one.id == flow.class_id) return one.ceil;
      }
    }
    return {};
  }

  void Grant(BitRate rate, uint64_t sequence = 1) {
    ASSERT_FALSE(server_.budget_reports.empty());
    shaping_->OnGrants({.sequence = sequence,
                        .answers = server_.budget_reports.back().sequence,
                        .grants = {{.budget = "web",
                                    .team = "*",
                                    .rate = rate,
                                    .connections = 0,
                                    .duration = absl::Seconds(120)}}});
  }

  // Lets the first pod get so many bits.
  void Use(units::BitCount bits) {
    used_ += units::ToBytes(bits);
    for (const ShapedFlow& flow : shaper_.tables().flows) {
      if (flow.direction != TrafficDirection::kIngress || flow.host_index != kLink) continue;
      shaper_.Count(ShapedFlowReading{.host_index = flow.host_index,
                                      .scope = flow.scope,
                                      .direction = flow.direction,
                                      .offered = used_});
      shaper_.Count(
          ShapeClassReading{.direction = flow.direction, .id = flow.class_id, .sent = used_});
    }
  }

  os::SimClock clock_;
  ByteCount used_;
  FakeShaper shaper_;
  absl::Duration plan_takes_;  // The time of the loop that a plan takes.
  FakeServerLink server_;
  testing_support::RecordingLog log_;
  std::unique_ptr<Shaping> shaping_;
};

TEST_F(ShapingTest, WithoutLimitsTheKernelHasNothingOfIt) {
  shaping_->Start({Pod()});
  EXPECT_TRUE(shaping_->Attach(Pod(12)).ok());
  Run(absl::Seconds(30));
  EXPECT_EQ(shaper_.applied(), 0U);
  EXPECT_EQ(shaping_->NextWake(), absl::InfiniteFuture());
}

TEST_F(ShapingTest, PodsThatNothingLimitsMakeNoWork) {
  ASSERT_TRUE(Put({}).ok());
  shaping_->Start({});
  EXPECT_TRUE(shaping_->Attach(Pod()).ok());
  ASSERT_TRUE(shaping_->Detach(Pod().host_link).ok());
  EXPECT_EQ(shaping_->NextWake(), absl::InfiniteFuture());
}

TEST_F(ShapingTest, PodsThatAPolicyLimitsAreShapedTogetherAMomentAfterTheirAttach) {
  ASSERT_TRUE(Put({Limit(100 * kMbit)}).ok());
  shaping_->Start({});
  const size_t applied = shaper_.applied();
  for (uint32_t i = 0; i < 32; ++i) EXPECT_TRUE(shaping_->Attach(Pod(kLink + i)).ok());
  EXPECT_EQ(shaper_.applied(), applied);
  EXPECT_EQ(shaping_->NextWake(), clock_.Now() + Shaping::kSoon);
  clock_.Advance(Shaping::kSoon);
  shaping_->Tick();
  EXPECT_EQ(shaper_.applied(), applied + 1);
  EXPECT_EQ(shaper_.tables().flows.size(), 32U);
  EXPECT_EQ(LeafRate(), FrameRate(100 * kMbit));
}

TEST_F(ShapingTest, PlansTakeATenthOfTheTimeHoweverManyPodsThereAre) {
  ASSERT_TRUE(Put({Limit(100 * kMbit)}).ok());
  plan_takes_ = absl::Milliseconds(15);
  shaping_->Start({Pod()});
  EXPECT_TRUE(shaping_->Attach(Pod(kLink + 1)).ok());
  EXPECT_EQ(shaping_->NextWake(), clock_.Now() + absl::Milliseconds(150));
  clock_.Advance(absl::Milliseconds(150));
  shaping_->Tick();
  EXPECT_EQ(shaper_.tables().flows.size(), 2U);
  // However long a plan takes, a pod does not wait for longer than until the next look.
  plan_takes_ = absl::Seconds(3);
  EXPECT_TRUE(shaping_->Attach(Pod(kLink + 2)).ok());
  clock_.Advance(absl::Milliseconds(150));
  shaping_->Tick();
  EXPECT_TRUE(shaping_->Attach(Pod(kLink + 3)).ok());
  clock_.Advance(Shaping::kLook);
  shaping_->Tick();
  EXPECT_EQ(shaper_.tables().flows.size(), 4U);
}

TEST_F(ShapingTest, WhatAPodHasCountedIsReadBeforeTheNextOneTakesItsClassesAway) {
  ASSERT_TRUE(Put({Limit(100 * kMbit)}).ok());
  shaping_->Start({Pod()});
  Run(absl::Seconds(1));
  ASSERT_FALSE(shaper_.tables().flows.empty());
  const ShapedFlow flow = shaper_.tables().flows.front();
  shaper_.Count(
      ShapeClassReading{.direction = flow.direction, .id = flow.class_id, .dropped_packets = 5});
  ASSERT_TRUE(shaping_->Detach(Pod().host_link).ok());
  EXPECT_TRUE(shaping_->Attach(Pod(kLink + 1)).ok());
  clock_.Advance(Shaping::kSoon);
  shaping_->Tick();
  ASSERT_EQ(shaper_.tables().flows.front().host_index, kLink + 1);
  const auto totals = shaping_->state().totals;
  EXPECT_EQ(totals.at({"", flow.direction}).dropped_packets, 5U);
}

TEST_F(ShapingTest, APodThatGoesBeforeItIsShapedLeavesNothing) {
  ASSERT_TRUE(Put({Limit(100 * kMbit)}).ok());
  shaping_->Start({});
  EXPECT_TRUE(shaping_->Attach(Pod()).ok());
  ASSERT_TRUE(shaping_->Detach(Pod().host_link).ok());
  Run(absl::Seconds(2));
  EXPECT_TRUE(shaper_.tables().flows.empty());
  EXPECT_EQ(shaping_->NextWake(), clock_.Now() + Shaping::kRepair - absl::Seconds(2));
}

TEST_F(ShapingTest, APodsOwnOptionsNeedNoLimit) {
  ASSERT_TRUE(Put({}).ok());
  shaping_->Start({});
  TrafficPod pod = Pod();
  pod.internet.ingress = 30 * kMbit;
  EXPECT_TRUE(shaping_->Attach(pod).ok());
  EXPECT_EQ(LeafRate(), FrameRate(30 * kMbit));
}

TEST_F(ShapingTest, WhereAPolicyLimitsPodsTheQueuesAreThereBeforeTheFirstAndAfterTheLast) {
  ASSERT_TRUE(Put({Limit(100 * kMbit)}).ok());
  shaping_->Start({});
  EXPECT_TRUE(shaper_.tables().ready);
  EXPECT_TRUE(shaping_->Attach(Pod()).ok());
  ASSERT_TRUE(shaping_->Detach(Pod().host_link).ok());
  Run(Shaping::kKeptFor + absl::Seconds(2));
  EXPECT_TRUE(shaper_.tables().flows.empty());
  EXPECT_TRUE(shaper_.tables().ready);
  ASSERT_TRUE(Put({}).ok());
  EXPECT_EQ(shaper_.tables(), ShapingTables());
  EXPECT_EQ(shaping_->NextWake(), absl::InfiniteFuture());
}

TEST_F(ShapingTest, TheQueuesOfPodsWithOptionsOfTheirOwnOutliveTheLastForAWhile) {
  ASSERT_TRUE(Put({}).ok());
  shaping_->Start({});
  EXPECT_FALSE(shaper_.tables().ready);
  EXPECT_TRUE(shaping_->Attach(LimitedPod()).ok());
  ASSERT_TRUE(shaping_->Detach(Pod().host_link).ok());
  Run(Shaping::kKeptFor - absl::Seconds(10));
  EXPECT_TRUE(shaper_.tables().flows.empty());
  EXPECT_TRUE(shaper_.tables().ready);
  const size_t applied = shaper_.applied();
  Run(absl::Seconds(5));
  EXPECT_EQ(shaper_.applied(), applied) << "nothing is to be done meanwhile";
  Run(absl::Seconds(10));
  EXPECT_EQ(shaper_.tables(), ShapingTables());
  EXPECT_EQ(shaping_->NextWake(), absl::InfiniteFuture());
}

TEST_F(ShapingTest, ALimitChangesAtOnceAndGoesWithItsPolicy) {
  shaping_->Start({Pod()});
  ASSERT_TRUE(Put({Limit(100 * kMbit)}).ok());
  EXPECT_EQ(LeafRate(), FrameRate(100 * kMbit));
  ASSERT_TRUE(Put({Limit(20 * kMbit)}).ok());
  EXPECT_EQ(LeafRate(), FrameRate(20 * kMbit));
  ASSERT_TRUE(Put({}).ok());
  EXPECT_TRUE(shaper_.tables().flows.empty());
}

TEST_F(ShapingTest, WhatAnAgentBeforeHasLeftGoesWhenNothingIsToBeShaped) {
  ASSERT_TRUE(Put({Limit(100 * kMbit)}).ok());
  shaping_->Start({Pod()});
  ASSERT_FALSE(shaper_.tables().flows.empty());
  Build();
  shaping_->Start({Pod()});
  EXPECT_TRUE(shaper_.tables().flows.empty());
}

TEST_F(ShapingTest, APodThatHasGoneHasNoFlowSoonAfter) {
  ASSERT_TRUE(Put({Limit(100 * kMbit)}).ok());
  shaping_->Start({Pod(), Pod(12)});
  EXPECT_EQ(shaper_.tables().flows.size(), 2U);
  ASSERT_TRUE(shaping_->Detach("spk12").ok());
  Run(absl::Seconds(2));
  EXPECT_EQ(shaper_.tables().flows.size(), 1U);
}

TEST_F(ShapingTest, ARefusalIsShownAndTriedAgain) {
  shaper_.Break(absl::InternalError("no memory"));
  ASSERT_TRUE(Put({Limit(100 * kMbit)}).ok());
  shaping_->Start({Pod()});
  EXPECT_EQ(shaping_->state().missing, "no memory");
  shaper_.Break(absl::OkStatus());
  Run(absl::Seconds(2));
  EXPECT_EQ(shaping_->state().missing, "");
  EXPECT_EQ(LeafRate(), FrameRate(100 * kMbit));
}

TEST_F(ShapingTest, AKernelThatLacksItIsAskedOnceAMinute) {
  shaper_.Break(absl::UnimplementedError("the kernel lacks ifb"));
  ASSERT_TRUE(Put({Limit(100 * kMbit)}).ok());
  shaping_->Start({Pod()});
  Run(absl::Seconds(50));
  shaper_.Break(absl::OkStatus());
  EXPECT_EQ(shaping_->state().missing, "the kernel lacks ifb");
  Run(absl::Seconds(15));
  EXPECT_EQ(shaping_->state().missing, "");
}

TEST_F(ShapingTest, ABrokenPolicyIsRefusedAndTheOneBeforeStays) {
  shaping_->Start({Pod()});
  ASSERT_TRUE(Put({Limit(100 * kMbit)}).ok());
  const absl::Status refused =
      Put({Entry("BandwidthLimit/all",
                 policy::BandwidthLimit{.teams = {"nobody"}, .pod_ingress = 10 * kMbit})});
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(LeafRate(), FrameRate(100 * kMbit));
}

TEST_F(ShapingTest, WithoutAGrantABudgetGivesItsFloor) {
  ASSERT_TRUE(Put({Budget()}).ok());
  shaping_->Start({Pod()});
  EXPECT_EQ(LeafRate(), FrameRate(2 * kMbit));
}

TEST_F(ShapingTest, ReportsWithinASecondOfAStreamAndEachRefreshAndTakesGrants) {
  ASSERT_TRUE(Put({Budget()}).ok());
  shaping_->Start({Pod()});
  Run(absl::Seconds(20));
  EXPECT_TRUE(server_.budget_reports.empty()) << "there is no stream";
  shaping_->OnStream();
  Run(absl::Seconds(1));
  ASSERT_EQ(server_.budget_reports.size(), 1U);
  EXPECT_EQ(server_.budget_reports[0].sequence, 1U);
  ASSERT_EQ(server_.budget_reports[0].uses.size(), 1U);
  EXPECT_EQ(server_.budget_reports[0].uses[0].team, "*");

  Grant(50 * kMbit);
  EXPECT_EQ(LeafRate(), FrameRate(50 * kMbit));
  // The first of a stream is told at once; and once more when it has been used for a while.
  ASSERT_EQ(server_.budget_reports.size(), 2U);
  EXPECT_EQ(server_.budget_reports[1].applied, 1U);
  EXPECT_EQ(server_.budget_reports[1].uses[0].held, 50 * kMbit);
  Run(absl::Seconds(1));
  EXPECT_EQ(server_.budget_reports.size(), 3U);
  Run(absl::Seconds(10));
  EXPECT_EQ(server_.budget_reports.size(), 5U);

  Grant(60 * kMbit, 2);
  EXPECT_EQ(server_.budget_reports.size(), 5U) << "it is told when it has been used";
  Grant(10 * kMbit, 3);
  // It is told at once: others wait for it.
  ASSERT_EQ(server_.budget_reports.size(), 6U);
  EXPECT_EQ(server_.budget_reports[5].applied, 3U);
}

// The server counts what it sent in the stream before as held until it hears of this one: whatever
// a report that was lost has said of it.
TEST_F(ShapingTest, TheFirstGrantsOfAStreamAreToldAtOnceEvenIfNothingChanges) {
  ASSERT_TRUE(Put({Budget()}).ok());
  shaping_->Start({Pod()});
  shaping_->OnStream();
  Run(absl::Seconds(1));
  Grant(50 * kMbit);
  shaping_->OnStream();
  Run(absl::Seconds(1));
  const size_t reports = server_.budget_reports.size();
  EXPECT_EQ(server_.budget_reports.back().applied, 0U);
  Grant(50 * kMbit);
  ASSERT_EQ(server_.budget_reports.size(), reports + 1);
  EXPECT_EQ(server_.budget_reports.back().applied, 1U);
  EXPECT_EQ(server_.budget_reports.back().uses[0].held, 50 * kMbit);
  Grant(50 * kMbit, 2);
  EXPECT_EQ(server_.budget_reports.size(), reports + 1);
}

// A flow that is let go counts as still growing at the first look. What it leaves of the grant then
// is told at the second, before others have waited a whole refresh for it.
TEST_F(ShapingTest, WhatAFlowThatWasLetGoLeavesOfItsGrantIsTold) {
  ASSERT_TRUE(Put({Budget()}).ok());
  shaping_->Start({Pod()});
  shaping_->OnStream();
  Run(absl::Seconds(3));
  Grant(50 * kMbit);
  Use(units::BitCount(17'000'000));
  Run(absl::Milliseconds(200));
  Use(units::BitCount(15'660'000));  // It is all of the grant, with headers of frames.
  Run(absl::Milliseconds(300));
  ASSERT_GE(server_.budget_reports.back().uses[0].demand, 190 * kMbit) << "it is held back";
  Grant(100 * kMbit, 2);
  Use(units::BitCount(19'450'000));
  Run(absl::Milliseconds(300));
  ASSERT_GT(server_.budget_reports.back().uses[0].demand, 140 * kMbit) << "93, and 43 more";
  const size_t reports = server_.budget_reports.size();
  Use(units::BitCount(29'170'000));
  Run(absl::Milliseconds(300));
  ASSERT_EQ(server_.budget_reports.size(), reports + 1);
  EXPECT_LT(server_.budget_reports.back().uses[0].demand, 104 * kMbit);
}

TEST_F(ShapingTest, LooksSoonAtWhatALargerGrantHasChanged) {
  ASSERT_TRUE(Put({Budget()}).ok());
  shaping_->Start({Pod()});
  shaping_->OnStream();
  Run(absl::Seconds(3));
  ASSERT_EQ(server_.budget_reports.size(), 1U);
  Grant(50 * kMbit);
  ASSERT_EQ(server_.budget_reports.size(), 2U);
  Use(units::BitCount(20'000'000));
  Run(absl::Milliseconds(300));
  ASSERT_EQ(server_.budget_reports.size(), 3U);
  EXPECT_GT(server_.budget_reports[2].uses[0].demand, 60 * kMbit) << "20 Mbit in 0.3 s";
  // The part that it does not use of it is told as soon as it shows.
  Run(absl::Seconds(3));
  ASSERT_EQ(server_.budget_reports.size(), 4U);
  EXPECT_EQ(server_.budget_reports[3].uses[0].demand, BitRate());
}

TEST_F(ShapingTest, WhatChangesOftenDoesNotPutOffTheLooks) {
  ASSERT_TRUE(Put({Budget()}).ok());
  shaping_->Start({Pod()});
  shaping_->OnStream();
  Run(absl::Seconds(1));
  Use(units::BitCount(100'000'000));
  for (uint32_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(shaping_->Attach(Pod(kLink + 1 + i)).ok());
    Run(absl::Milliseconds(500));
  }
  EXPECT_GT(shaping_->state().grants[0].demand, BitRate());
}

TEST_F(ShapingTest, ANodeWithoutBudgetsSaysSoOnceAStream) {
  shaping_->Start({Pod()});
  shaping_->OnStream();
  Run(absl::Minutes(1));
  ASSERT_EQ(server_.budget_reports.size(), 1U);
  EXPECT_TRUE(server_.budget_reports[0].uses.empty());
}

TEST_F(ShapingTest, AGrantThatTheKernelDoesNotTakeIsNotCalledApplied) {
  ASSERT_TRUE(Put({Budget()}).ok());
  shaping_->Start({Pod()});
  shaping_->OnStream();
  Run(absl::Seconds(1));
  shaper_.Break(absl::InternalError("no memory"));
  Grant(50 * kMbit);
  EXPECT_EQ(server_.budget_reports.back().applied, 0U);
}

TEST_F(ShapingTest, WithoutTheServerAGrantIsHeldThenHalvedDownToTheFloor) {
  ASSERT_TRUE(Put({Budget()}).ok());
  shaping_->Start({Pod()});
  shaping_->OnStream();
  Run(absl::Seconds(1));
  Grant(64 * kMbit);
  Run(absl::Seconds(410));
  EXPECT_EQ(LeafRate(), FrameRate(64 * kMbit));
  Run(absl::Seconds(20));
  EXPECT_EQ(LeafRate(), FrameRate(32 * kMbit));
  Run(absl::Minutes(10));
  EXPECT_EQ(LeafRate(), FrameRate(2 * kMbit));
}

TEST_F(ShapingTest, AShadowBudgetHoldsNothingBackAndReports) {
  ASSERT_TRUE(Put({Budget(/*shadow=*/true)}).ok());
  shaping_->Start({Pod()});
  EXPECT_EQ(LeafRate(), ByteRate());
  shaping_->OnStream();
  Run(absl::Seconds(1));
  ASSERT_EQ(server_.budget_reports.size(), 1U);
}

TEST_F(ShapingTest, WhatSomebodyChangesIsPutBackAndCounted) {
  ASSERT_TRUE(Put({Limit(100 * kMbit)}).ok());
  shaping_->Start({Pod()});
  shaper_.Disturb(3);
  Run(Shaping::kRepair + absl::Seconds(1));
  EXPECT_EQ(shaping_->state().repaired, 3U);
}

TEST_F(ShapingTest, LearnedAddressesAreShapedAsTheirGroup) {
  ASSERT_TRUE(Put({Entry("DestinationGroup/data",
                         policy::DestinationGroup{.cidrs = policy::Blocks({"192.0.2.0/24"}),
                                                  .names = {"data.example"}}),
                   Entry("BandwidthLimit/data", policy::BandwidthLimit{.destination_group = "data",
                                                                       .pod_ingress = 10 * kMbit})})
                  .ok());
  shaping_->Start({Pod()});
  ASSERT_EQ(shaping_->rules().host_names().size(), 1U);
  const ClassNumber group = shaping_->rules().host_names()[0].second;
  shaping_->OnLearned({{ip::Address::V4(0x08080808), group}});
  ASSERT_EQ(shaper_.tables().learned.size(), 1U);
  EXPECT_EQ(shaper_.tables().learned[0].number, group);
  EXPECT_EQ(shaping_->state().learned_addresses, 1U);
}

TEST_F(ShapingTest, AWholeLinkIsLimitedWithoutAnyPolicy) {
  shaping_->Start({});
  EXPECT_TRUE(shaping_->Attach(Pod(kLink + 1)).ok());
  EXPECT_EQ(shaper_.applied(), 0U);
  EXPECT_TRUE(shaping_->Attach(LimitedPod()).ok());
  EXPECT_EQ(LinkRates(), std::vector<ByteRate>{ByteRate(10'000'000)});
  // It is as it was for the next agent, who has the pods from the journal.
  Build();
  shaping_->Start({LimitedPod(), Pod(kLink + 1)});
  EXPECT_EQ(LinkRates(), std::vector<ByteRate>{ByteRate(10'000'000)});
  ASSERT_TRUE(shaping_->Detach(LimitedPod().host_link).ok());
  Run(absl::Seconds(2));
  EXPECT_TRUE(shaper_.tables().flows.empty());
}

TEST_F(ShapingTest, AnAddFailsWhoseLinkCannotBeLimited) {
  shaping_->Start({});
  shaper_.Break(absl::UnimplementedError("the kernel lacks devices of kind ifb"));
  const absl::Status status = shaping_->Attach(LimitedPod());
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_NE(status.message().find("the kernel lacks devices of kind ifb"), std::string::npos);
  ASSERT_TRUE(shaping_->Detach(LimitedPod().host_link).ok());
  // A limit that only policy or an annotation says never fails an ADD.
  ASSERT_TRUE(Put({Limit(kMbit)}).ok());
  EXPECT_TRUE(shaping_->Attach(Pod()).ok());
  shaper_.Break(absl::OkStatus());
  EXPECT_TRUE(shaping_->Attach(LimitedPod(kLink + 1)).ok());
  EXPECT_EQ(LinkRates(), std::vector<ByteRate>{ByteRate(10'000'000)});
}

}  // namespace
}  // namespace spoke::netagent
