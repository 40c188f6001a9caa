// The loop, where pods wait and where operators ask how ADDs went.
#include "ipam-server/ledger/decisions/demand.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/ledger/testing/hello_for_test.h"
#include "ipam-server/loop/testing/fleet_loop_for_test.h"

namespace spoke::ipam {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class DemandTest : public FleetLoopTest {
 protected:
  // A node whose two addresses are attached and available.
  void Join() {
    Greet(1);
    AnswerCloud();
    ASSERT_EQ(CountAddresses(Stored()).available, 2U);
  }
  void Say(uint32_t pods, SessionId session = 1) {
    loop_->PostFromAgent(DemandEvent{session, {.waiting = {{"web", pods}}}});
    Step();
  }
  void Wait(absl::Duration time) {
    clock_.Advance(time);
    Step();
  }
  std::vector<std::string> Reasons(SessionId session = 1) {
    std::vector<std::string> reasons;
    for (const node_api::Forecast& forecast : SentTo<node_api::Forecast>(session))
      reasons.push_back(forecast.reason);
    return reasons;
  }
  uint64_t Waiting() {
    uint64_t pods = 99;
    loop_->PostQuery([&](const FleetView& view) { pods = WaitingPods(view.fleet); });
    Step();
    return pods;
  }
};

TEST_F(DemandTest, OneRequestForAllThatWaitInTheLaneOfPodsThatWait) {
  Join();
  cloud_.TakeWaiting();
  const int read = agents_.read_next[1];
  Say(6);
  ASSERT_THAT(cloud_.waiting(), SizeIs(1));
  EXPECT_THAT(cloud_.waiting()[0].configurations, SizeIs(8));
  EXPECT_EQ(cloud_.waiting()[0].lane, CloudLane::kBlocking);
  EXPECT_EQ(CountAddresses(Stored()).attaching, 6U);  // They are written before the cloud is asked.
  EXPECT_EQ(agents_.read_next[1], read + 1);
  EXPECT_THAT(Reasons(), ElementsAre("asked the cloud for 6 addresses of pool default"));
  AnswerCloud();
  EXPECT_THAT(SentTo<node_api::DesiredState>(1).back().added, SizeIs(6));
  loop_->PostFromAgent(DemandEvent{1, {}});
  Step();
  EXPECT_EQ(Waiting(), 0U);
}

TEST_F(DemandTest, AnAvailableAddressOfNoUseToThemDoesNotTakeThemOutOfTheLane) {
  Join();
  EXPECT_EQ(NicOf(Stored()).lane, CloudLane::kWarmUp);
  EXPECT_EQ(NicOf(Stored(), /*pods_wait=*/true).lane, CloudLane::kBlocking);
}

TEST_F(DemandTest, AForecastFollowsEachDemandAndEachChangeButNotMoreThanOneASecond) {
  Join();
  Say(4);
  Say(6);
  EXPECT_THAT(Reasons(), SizeIs(1));
  Wait(absl::Seconds(1));
  EXPECT_THAT(Reasons(), ElementsAre("asked the cloud for 4 addresses of pool default",
                                     "asked the cloud for 6 addresses of pool default"));
  for (int i = 0; i < 5; ++i) Wait(absl::Seconds(1));
  EXPECT_THAT(Reasons(), SizeIs(2));  // There is nothing new.
  cloud_.FailRequests(absl::UnavailableError("throttled"));
  AnswerCloud();
  Wait(absl::Seconds(1));
  ASSERT_THAT(Reasons(), SizeIs(3));
  EXPECT_THAT(Reasons()[2], HasSubstr("attaching addresses to node node1 fails: throttled"));
  loop_->PostFromAgent(DemandEvent{1, {}});
  for (int i = 0; i < 5; ++i) Wait(absl::Seconds(1));
  EXPECT_THAT(Reasons(), SizeIs(3));  // Nobody waits any more.
}

TEST_F(DemandTest, ItEndsWithTheSessionAndIsForgottenWithTheNext) {
  Join();
  Say(6);
  loop_->PostClosed(1);
  EXPECT_EQ(Waiting(), 0U);
  Greet(2);
  Say(6, 2);
  Say(6, 1);  // The session is over.
  EXPECT_EQ(Waiting(), 6U);
  Greet(3);
  EXPECT_EQ(Waiting(), 0U);
  Wait(absl::Seconds(1));
  EXPECT_THAT(Reasons(3), IsEmpty());
}

TEST_F(DemandTest, WhatOtherAgentsSaidOutlivesAFailureToStore) {
  Join();
  Say(4);
  const NodeKey other{"node2", "vm-2"};
  loop_->PostHello(2, {.node = IdentityOf(other)});
  Step();
  store_.FailCommits(absl::ResourceExhaustedError("disk full"));
  Say(4, 2);  // Its agent begins again with hello, the first one's does not.
  EXPECT_EQ(agents_.closed.count(2), 1U);
  EXPECT_EQ(Waiting(), 4U);
  Wait(absl::Milliseconds(1500));
  EXPECT_THAT(Reasons().back(), HasSubstr("nothing can be stored: disk full"));
  store_.FailCommits(absl::OkStatus());
  Wait(absl::Seconds(2));
  Wait(absl::Seconds(2));
  EXPECT_EQ(Waiting(), 4U);
  EXPECT_THAT(Reasons().back(), HasSubstr("asked the cloud for 4 addresses"));
}

// Node 2 has used up the pool, and needs two of its addresses, when a pod of node 1 waits.
TEST_F(DemandTest, WhatOneNodeHasToSpareReachesThePodsOfAnotherWithinAMinute) {
  settings_.pools[0].cidr = ip::Prefix::Parse("10.1.0.0/28").value();  // 11 addresses.
  settings_.fleet.target = {.min = 2, .batch = 2, .spare = 0, .max = 16};
  settings_.fleet.cooldown = absl::Seconds(30);
  loop_ = NewLoop();
  Greet(1);
  loop_->PostHello(2, {.node = IdentityOf({"node2", "vm-2"})});
  Step();
  Say(9, 2);
  AnswerCloud();
  Say(0, 2);
  Say(4);  // It has two.
  EXPECT_THAT(Reasons().back(), HasSubstr("no address is free: pool default"));
  Wait(absl::Seconds(10));
  const auto asked = SentTo<node_api::ReclaimRequest>(2);
  ASSERT_THAT(asked, SizeIs(1)) << "it has been idle for ten seconds";
  ASSERT_THAT(asked[0].ranges, SizeIs(2));
  loop_->PostFromAgent(ReclaimAnswerEvent{2, {.id = asked[0].id, .agreed = asked[0].ranges}});
  Step();
  AnswerCloud();
  for (int i = 0; i < 31; ++i) Wait(absl::Seconds(1));
  EXPECT_EQ(CountAddresses(Stored()).attaching, 2U) << "as soon as their cooldown is over";
  EXPECT_THAT(SentTo<node_api::ReclaimRequest>(2), SizeIs(1)) << "nothing more is missing";
}

// --- Traces. ---

class TracesTest : public DemandTest {
 protected:
  void Ask(const std::string& node = "node1") {
    loop_->PostAskTraces(node, "ns", "pod",
                         [this](absl::StatusOr<node_api::AttachTracesAnswer> answer) {
                           ++answers_;
                           answer_ = std::move(answer);
                         });
    Step();
  }
  absl::StatusCode Code() const { return answer_.status().code(); }

  int answers_ = 0;
  absl::StatusOr<node_api::AttachTracesAnswer> answer_ = absl::UnknownError("not answered");
};

TEST_F(TracesTest, TheAnswerToTheRequestIsHandedOn) {
  Join();
  Ask();
  const auto asked = SentTo<node_api::AttachTracesRequest>(1);
  ASSERT_THAT(asked, SizeIs(1));
  EXPECT_EQ(asked[0].pod_namespace, "ns");
  EXPECT_EQ(asked[0].pod_name, "pod");
  loop_->PostFromAgent(AttachTracesEvent{1, {.id = asked[0].id + 1}});
  Step();
  EXPECT_EQ(answers_, 0);
  const node_api::AttachTracesAnswer traces = {.id = asked[0].id,
                                               .traces = {{.container_id = "c"}}};
  loop_->PostFromAgent(AttachTracesEvent{1, traces});
  loop_->PostFromAgent(AttachTracesEvent{1, traces});  // Nobody asks any more.
  Step();
  EXPECT_EQ(answers_, 1);
  ASSERT_TRUE(answer_.ok()) << answer_.status();
  EXPECT_EQ(answer_->traces, traces.traces);
}

TEST_F(TracesTest, WhoCannotBeAskedOrDoesNotAnswerIsNamed) {
  Ask();
  EXPECT_EQ(Code(), absl::StatusCode::kNotFound);
  Join();
  Ask();
  Wait(absl::Seconds(1));
  EXPECT_EQ(answers_, 1);
  Wait(absl::Seconds(1));
  EXPECT_EQ(answers_, 2);
  EXPECT_EQ(Code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(answer_.status().message(), HasSubstr("node1 did not answer in time"));
  Ask();
  loop_->PostClosed(1);
  Step();
  EXPECT_EQ(Code(), absl::StatusCode::kUnavailable);
  Ask();
  EXPECT_EQ(Code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(answers_, 4);
}

TEST_F(TracesTest, NotMoreThanALimitAreKeptWaiting) {
  Join();
  for (size_t i = 0; i < TraceRequests::kMost; ++i) Ask();
  EXPECT_EQ(answers_, 0);
  Ask();
  EXPECT_EQ(Code(), absl::StatusCode::kResourceExhausted);
  Greet(2);  // Their session is replaced.
  EXPECT_EQ(answers_, static_cast<int>(TraceRequests::kMost) + 1);
  EXPECT_EQ(Code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace spoke::ipam
