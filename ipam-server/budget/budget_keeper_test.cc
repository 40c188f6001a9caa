#include "ipam-server/budget/budget_keeper.h"

#include <map>
#include <optional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/recording_log.h"

namespace spoke::ipam {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using units::BitRate;

constexpr BitRate kMbit{1'000'000};
constexpr BitRate kCapacity = 100 * kMbit;

const NodeKey kNode1{"node1", "vm-1"};
const NodeKey kNode2{"node2", "vm-2"};

// Keeps the grants that are sent. Thread-safe.
class GrantedAgents final : public AgentLink {
 public:
  void Send(SessionId session, ToAgent message) override {
    absl::MutexLock lock(&mutex_);
    sent_[session].push_back(std::get<node_api::BudgetGrants>(std::move(message)));
  }
  void ReadNext(SessionId) override {}
  void Close(SessionId, absl::Status) override {}

  // What was sent in `session` since the last call.
  std::vector<node_api::BudgetGrants> Take(SessionId session) {
    absl::MutexLock lock(&mutex_);
    return std::exchange(sent_[session], {});
  }
  // Waits for the answer in `session` to a report.
  void AwaitAnswer(SessionId session, uint64_t sequence) {
    absl::MutexLock lock(&mutex_);
    const auto there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return !sent_[session].empty() && sent_[session].back().answers == sequence;
    };
    mutex_.Await(absl::Condition(&there));
  }

 private:
  absl::Mutex mutex_;
  std::map<SessionId, std::vector<node_api::BudgetGrants>> sent_ ABSL_GUARDED_BY(mutex_);
};

class BudgetKeeperTest : public testing::Test {
 protected:
  BudgetKeeperTest() {
    clock_.Advance(absl::Hours(24));  // Nothing is unknown any more.
    keeper_.SetBudgets({Internet()});
  }

  static BudgetSpec Internet() {
    return {.name = "internet", .capacity = kCapacity, .teams = {{.name = kOtherTeams}}};
  }
  void Report(const NodeKey& node, SessionId session, uint64_t sequence, node_api::BudgetUse use) {
    use.budget = "internet";
    use.team = kOtherTeams;
    keeper_.OnReport(node, session, {.sequence = sequence, .applied = 0, .uses = {use}});
  }
  // Decides, and returns what the last grants of `session` come to, if any were sent.
  std::optional<BitRate> Decided(SessionId session) {
    keeper_.Decide(agents_, log_);
    const std::vector<node_api::BudgetGrants> sent = agents_.Take(session);
    if (sent.empty()) return std::nullopt;
    BitRate rate;
    for (const node_api::BudgetGrant& grant : sent.back().grants) rate += grant.rate;
    return rate;
  }

  os::SimClock clock_;
  testing_support::RecordingLog log_;
  GrantedAgents agents_;
  // The thread, where it is started, decides when a report is urgent and at no other time.
  BudgetKeeper keeper_{clock_, {.tick = absl::Hours(1), .quick = absl::Milliseconds(1)}};
};

TEST_F(BudgetKeeperTest, ANodeThatReportsIsGrantedWhatItNeeds) {
  Report(kNode1, 1, 1, {.usage = 10 * kMbit, .demand = 40 * kMbit});
  const auto granted = Decided(1);
  ASSERT_TRUE(granted.has_value());
  EXPECT_GE(*granted, 40 * kMbit);
  EXPECT_LE(*granted, kCapacity);
  const std::vector<BudgetStanding> standings = keeper_.Standings();
  ASSERT_THAT(standings, SizeIs(1));
  EXPECT_EQ(standings[0].granted, *granted);
  const auto nodes = keeper_.NodesOf("internet", kOtherTeams);
  ASSERT_THAT(nodes, SizeIs(1));
  EXPECT_EQ(nodes[0].first, "node1");
  EXPECT_EQ(nodes[0].second.granted, *granted);
  EXPECT_EQ(keeper_.counts().reports, 1U);
  EXPECT_EQ(keeper_.counts().grants, 1U);
}

TEST_F(BudgetKeeperTest, GrantsGoToTheNewestSessionOnly) {
  Report(kNode1, 5, 1, {.demand = 40 * kMbit});
  EXPECT_TRUE(Decided(5).has_value());
  Report(kNode1, 7, 1, {.demand = 50 * kMbit});
  keeper_.OnStreamEnd(kNode1, 5);  // The old one's end is heard late.
  Report(kNode1, 5, 2, {.demand = kMbit});
  EXPECT_TRUE(Decided(7).has_value());
  EXPECT_THAT(agents_.Take(5), IsEmpty());
  EXPECT_EQ(keeper_.counts().reports, 2U) << "the old session's is nothing";
}

TEST_F(BudgetKeeperTest, NothingIsSentToWhoIsAwayAndItKeepsWhatItHas) {
  Report(kNode1, 1, 1, {.demand = 90 * kMbit});
  const BitRate first = Decided(1).value();
  keeper_.OnStreamEnd(kNode1, 1);
  Report(kNode2, 2, 1, {.demand = 90 * kMbit});
  const BitRate second = Decided(2).value_or(BitRate());
  EXPECT_THAT(agents_.Take(1), IsEmpty());
  EXPECT_LE(first + second, kCapacity);
  EXPECT_EQ(keeper_.NodesOf("internet", kOtherTeams).size(), 2U);
}

TEST_F(BudgetKeeperTest, WhatANodeThatIsGoneHadIsFreeAndItsNumberIsNotUsedAgain) {
  Report(kNode1, 1, 1, {.demand = 90 * kMbit});
  ASSERT_GE(Decided(1).value(), 90 * kMbit);
  const uint64_t number = keeper_.NodesOf("internet", kOtherTeams).at(0).second.node;
  Report(kNode2, 2, 1, {.demand = 90 * kMbit});
  EXPECT_LT(Decided(2).value_or(BitRate()), 90 * kMbit);
  keeper_.OnNodeGone(kNode1);
  keeper_.OnNodeGone({"node9", "never-seen"});
  clock_.Advance(absl::Seconds(1));
  Report(kNode2, 2, 2, {.demand = 90 * kMbit});
  EXPECT_GE(Decided(2).value(), 90 * kMbit);
  Report(kNode1, 3, 1, {.demand = kMbit});  // A machine of the same name and id after all.
  for (const auto& [name, standing] : keeper_.NodesOf("internet", kOtherTeams)) {
    EXPECT_NE(standing.node, number) << name;
  }
}

TEST_F(BudgetKeeperTest, AReportOfSaturationIsAnsweredWithoutWaitingForTheTick) {
  keeper_.Start(agents_, log_);
  Report(kNode1, 1, 1, {.usage = kMbit, .demand = 40 * kMbit, .throttled = BitRate(5)});
  agents_.AwaitAnswer(1, 1);
  // Another node joins; the first one has been given most of what there is.
  Report(kNode2, 2, 1, {.usage = kMbit, .demand = 90 * kMbit, .throttled = kMbit});
  agents_.AwaitAnswer(2, 1);
  keeper_.Stop();
  keeper_.Stop();  // Does nothing.
}

TEST_F(BudgetKeeperTest, MoreNodesThanTheFloorIsForAreSaidOnce) {
  BudgetSpec spec = Internet();
  spec.floor_nodes = 1;
  keeper_.SetBudgets({spec});
  Report(kNode1, 1, 1, {});
  Decided(1);
  EXPECT_EQ(log_.Count("budget_floor_short"), 0);
  Report(kNode2, 2, 1, {});
  Decided(1);
  Decided(1);
  EXPECT_EQ(log_.Count("budget_floor_short"), 1);
  keeper_.OnNodeGone(kNode2);
  Decided(1);
  Report(kNode2, 3, 1, {});
  Decided(1);
  EXPECT_EQ(log_.Count("budget_floor_short"), 2) << "it was over meanwhile";
}

TEST_F(BudgetKeeperTest, NodesThatNeverReportAreNotCounted) {
  keeper_.OnStreamEnd(kNode1, 1);
  EXPECT_THAT(keeper_.NodesOf("internet", kOtherTeams), IsEmpty());
  EXPECT_EQ(Decided(1), std::nullopt);
}

TEST_F(BudgetKeeperTest, WhatTheServerBeforeHasGrantedIsUnknownUntilAllItKnewAreHeardOrGone) {
  BudgetKeeper young(clock_);
  young.ExpectNodes({kNode1, kNode2});
  young.SetBudgets({Internet()});
  const auto standing = [&] {
    const std::vector<BudgetStanding> standings = young.Standings();
    return standings.empty() ? BudgetStanding() : standings[0];
  };
  const auto report = [&](uint64_t sequence) {
    young.OnReport(kNode1, 1,
                   {.sequence = sequence,
                    .applied = 0,
                    .uses = {{.budget = "internet",
                              .team = kOtherTeams,
                              .usage = 30 * kMbit,
                              .demand = 80 * kMbit,
                              .held = 30 * kMbit}}});
    young.Decide(agents_, log_);
  };
  report(1);
  EXPECT_GT(standing().learning, absl::ZeroDuration());
  EXPECT_GT(standing().unknown, BitRate());
  EXPECT_LE(standing().granted + standing().unknown + standing().floors, kCapacity);
  young.OnNodeGone(kNode2);  // Which has never been heard here.
  clock_.Advance(absl::Seconds(1));
  report(2);
  EXPECT_EQ(standing().unknown, BitRate());
  EXPECT_EQ(standing().learning, absl::ZeroDuration());
  EXPECT_GE(agents_.Take(1).back().grants.at(0).rate, 80 * kMbit);
}

}  // namespace
}  // namespace spoke::ipam
