// The loop, where an operator puts an address into quarantine that a node has.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/ledger/decisions/quarantine.h"
#include "ipam-server/loop/testing/fleet_loop_for_test.h"

namespace spoke::ipam {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class QuarantineTest : public FleetLoopTest {
 protected:
  void Quarantine(bool on) {
    loop_->PostChange(
        [this, on](ServerState& state, RawRecords&) {
          return SetQuarantine(
              state.fleet, A("10.1.0.4"),
              on ? std::optional(ipam::Quarantine{.reason = "another machine has it"})
                 : std::nullopt,
              clock_.Now());
        },
        [](const absl::Status& status) { EXPECT_TRUE(status.ok()) << status; });
    Step();
  }
  // The pod ends, and its address is cool again.
  void EndPod() {
    loop_->PostFromAgent(
        ReportEvent{1, {.sequence = 2, .released = {{.address = A("10.1.0.4"), .generation = 1}}}});
    Step();
    EXPECT_THAT(SentTo<node_api::ReclaimRequest>(1), IsEmpty()) << "it would be denied";
    loop_->PostFromAgent(ReportEvent{1, {.sequence = 3, .cooled = {A("10.1.0.4")}}});
    Step();
  }
  node_api::DesiredState Last(SessionId session = 1) {
    return SentTo<node_api::DesiredState>(session).back();
  }
  std::vector<std::string> Added(SessionId session = 1) {
    std::vector<std::string> added;
    for (const auto& configuration : Last(session).added) {
      added.push_back(configuration.range.base().ToString());
    }
    return added;
  }
  const ip::Prefix range_ = ip::Prefix::Host(A("10.1.0.4"));
};

TEST_F(QuarantineTest, WhatAPodHasItKeepsAndNoOtherGetsIt) {
  JoinWithAPod();
  Quarantine(true);
  EXPECT_THAT(Last().removed, ElementsAre(range_)) << "the agent assigns it no more";
  EXPECT_EQ(CountAddresses(Stored()).in_use, 1U);
  EndPod();
  const auto asked = SentTo<node_api::ReclaimRequest>(1);
  ASSERT_THAT(asked, SizeIs(1));
  EXPECT_THAT(asked[0].ranges, ElementsAre(range_));
  loop_->PostFromAgent(ReclaimAnswerEvent{1, {.id = asked[0].id, .agreed = {range_}}});
  Step();
  AnswerCloud();
  EXPECT_EQ(Stored().configurations.count(A("10.1.0.4")), 0U) << "it has left the NIC";
}

TEST_F(QuarantineTest, TheNextSessionIsNotToldOfItEither) {
  JoinWithAPod();
  Quarantine(true);
  loop_->PostClosed(1);
  Step();
  Greet(2, AssignOne().in_use);
  EXPECT_THAT(Added(2), Not(Contains("10.1.0.4")));
  EXPECT_EQ(CountAddresses(Stored()).in_use, 1U);
}

TEST_F(QuarantineTest, ARequestThatWasLostIsMadeAgain) {
  JoinWithAPod();
  Quarantine(true);
  EndPod();
  loop_->PostClosed(1);
  Step();
  Greet(2);
  EXPECT_THAT(SentTo<node_api::ReclaimRequest>(2), IsEmpty());
  for (int i = 0; i < 65; ++i) {
    clock_.Advance(absl::Seconds(1));
    Step();
  }
  ASSERT_THAT(SentTo<node_api::ReclaimRequest>(2), SizeIs(1));
  EXPECT_THAT(SentTo<node_api::ReclaimRequest>(2)[0].ranges, ElementsAre(range_));
}

TEST_F(QuarantineTest, ItIsTheNodesAgainWhenItIsLifted) {
  JoinWithAPod();
  Quarantine(true);
  Quarantine(false);
  EXPECT_THAT(Added(), ElementsAre("10.1.0.4"));
}

TEST_F(QuarantineTest, WhatTheAgentIsAskedForIsNotToldAgainBeforeItHasAnswered) {
  JoinWithAPod();
  Quarantine(true);
  EndPod();
  const auto asked = SentTo<node_api::ReclaimRequest>(1);
  ASSERT_THAT(asked, SizeIs(1));
  Quarantine(false);
  EXPECT_THAT(Added(), Not(Contains("10.1.0.4"))) << "an agreement may be on its way";
  loop_->PostFromAgent(ReclaimAnswerEvent{1, {.id = asked[0].id, .denied = {range_}}});
  Step();
  EXPECT_THAT(Added(), ElementsAre("10.1.0.4")) << "now it has not been given up";
}

}  // namespace
}  // namespace spoke::ipam
