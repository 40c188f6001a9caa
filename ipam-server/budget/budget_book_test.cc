#include "ipam-server/budget/budget_book.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

using units::BitRate;

constexpr BitRate kMbit{1'000'000};
constexpr BitRate kSome{1};    // Any rate that was throttled says that pods were held back.
constexpr uint64_t kFar = 99;  // A node that never says anything.

BudgetSpec SomeBudget() {
  BudgetSpec spec{.name = "internet", .capacity = 1000 * kMbit};
  spec.teams = {{.name = "*"}, {.name = "a"}, {.name = "b"}};
  spec.floor_part = 0.1;
  spec.floor_nodes = 100;
  return spec;
}

// Nodes that apply what they are sent, if a test says so.
class BudgetBookTest : public ::testing::Test {
 protected:
  struct Node {
    uint64_t sequence = 0;
    node_api::BudgetGrants grants;
    std::vector<node_api::BudgetUse> uses;
  };

  void SetUp() override { Start({1, 2, 3}); }

  void Start(std::vector<uint64_t> expected) {
    book_ = std::make_unique<BudgetBook>(now_);
    book_->ExpectNodes(std::move(expected));
    book_->SetBudgets({spec_});
    for (const uint64_t node : {1U, 2U, 3U}) Connect(node);
  }

  void Connect(uint64_t node) {
    book_->OnStream(node);
    nodes_[node].sequence = 0;
    nodes_[node].grants.sequence = 0;
  }

  BitRate Held(uint64_t node, const std::string& team) {
    for (const node_api::BudgetGrant& grant : nodes_[node].grants.grants) {
      if (grant.team == team) return grant.rate;
    }
    return {};
  }

  // The node wants so much for the team, and says what it applies.
  bool Report(uint64_t node, const std::string& team, BitRate demand, BitRate throttled = {}) {
    Node& of = nodes_[node];
    node_api::BudgetReport report{.sequence = ++of.sequence, .applied = of.grants.sequence};
    if (!team.empty()) {
      report.uses.push_back({.budget = "internet",
                             .team = team,
                             .usage = 10 * demand / 11,
                             .demand = demand,
                             .held = Held(node, team),
                             .throttled = throttled});
    }
    return book_->OnReport(node, report, now_);
  }

  // Decides; all nodes apply what they are sent, except `deaf`.
  size_t Decide(uint64_t deaf = 0) {
    const auto messages = book_->Decide(now_);
    for (const auto& [node, grants] : messages) {
      if (node != deaf) nodes_[node].grants = grants;
    }
    EXPECT_LE(book_->Committed("internet", now_), spec_.capacity);
    return messages.size();
  }

  void Pass(absl::Duration time) { now_ += time; }

  BudgetSpec spec_ = SomeBudget();
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1000);
  std::unique_ptr<BudgetBook> book_;
  std::map<uint64_t, Node> nodes_;
};

// All are heard, so that nothing is left to learn.
class LearnedBookTest : public BudgetBookTest {
 protected:
  void SetUp() override {
    BudgetBookTest::SetUp();
    for (const uint64_t node : {1U, 2U, 3U}) Report(node, "", {});
    Decide();
    EXPECT_EQ(book_->Standings(now_)[0].unknown, BitRate());
  }
};

// A store may turn out to be the newest there is only after nodes have been heard.
TEST_F(BudgetBookTest, WhomAServerBeforeMayHaveGivenGrantsIsKnownLater) {
  book_ = std::make_unique<BudgetBook>(now_);
  book_->SetBudgets({spec_});
  for (const uint64_t node : {1U, 2U, 3U}) Connect(node);
  Report(1, "", {});
  Report(2, "a", 100 * kMbit);
  Decide();
  EXPECT_EQ(Held(2, "a"), BitRate()) << "nobody knows who else holds anything";
  book_->ExpectNodes({1, 2, 3});
  Decide();
  EXPECT_EQ(Held(2, "a"), BitRate()) << "the third has not been heard";
  Report(3, "", {});
  Pass(BudgetBook::kTick);
  Decide();
  EXPECT_EQ(Held(2, "a"), 100 * kMbit);
  EXPECT_EQ(book_->Standings(now_)[0].unknown, BitRate());
}

TEST_F(LearnedBookTest, GrantsWhatIsAskedForWhenThereIsEnough) {
  Report(1, "a", 100 * kMbit);
  Report(2, "b", 200 * kMbit);
  EXPECT_EQ(Decide(), 2U);
  EXPECT_NEAR(static_cast<double>(Held(1, "a").count()), 100e6, 1e3);
  EXPECT_NEAR(static_cast<double>(Held(2, "b").count()), 200e6, 1e3);
  EXPECT_EQ(nodes_[1].grants.answers, 2U);
  EXPECT_EQ(nodes_[1].grants.grants[0].duration, spec_.grant);
}

TEST_F(LearnedBookTest, SharesBetweenTeamsWhenThereIsNotEnough) {
  Report(1, "a", 5000 * kMbit, kSome);
  Report(2, "b", 5000 * kMbit, kSome);
  Report(3, "b", 5000 * kMbit, kSome);
  Decide();
  EXPECT_NEAR(static_cast<double>(Held(1, "a").count()), 450e6, 1e3);
  EXPECT_NEAR(static_cast<double>(Held(2, "b").count()), 225e6, 1e3);
  EXPECT_NEAR(static_cast<double>(Held(3, "b").count()), 225e6, 1e3);
}

TEST_F(LearnedBookTest, AGrantGrowsOnlyOnceTheOtherIsAppliedAsLess) {
  Report(1, "a", 900 * kMbit, kSome);
  Decide();
  Report(1, "a", 900 * kMbit, kSome);
  EXPECT_TRUE(Report(2, "b", 900 * kMbit, kSome));
  Pass(absl::Seconds(1));
  Decide();
  // The first is told to have half, and counts for all of it until it says so.
  EXPECT_NEAR(static_cast<double>(Held(1, "a").count()), 450e6, 1e3);
  EXPECT_LT(Held(2, "b"), kMbit);
  EXPECT_TRUE(Report(1, "a", 900 * kMbit, kSome));
  Pass(absl::Seconds(1));
  Decide();
  EXPECT_NEAR(static_cast<double>(Held(2, "b").count()), 450e6, 1e3);
}

TEST_F(LearnedBookTest, WhatIsFreeGoesFirstToThoseThatHaveTheLeastOfTheirShare) {
  Report(1, "a", 300 * kMbit);
  Report(3, "b", 600 * kMbit);
  Decide();
  Report(3, "b", 540 * kMbit);
  Decide();
  Report(3, "b", 540 * kMbit);
  // 60 are free, since what the third node has above its share it has not given back.
  Report(1, "a", 400 * kMbit, kSome);
  Report(2, "a", 50 * kMbit, kSome);
  Decide();
  EXPECT_NEAR(static_cast<double>(Held(1, "a").count()), 320e6, 1e5);
  EXPECT_NEAR(static_cast<double>(Held(2, "a").count()), 40e6, 1e5);
}

TEST_F(LearnedBookTest, WhatIsFreeDoesNotWaitForThoseThatHaveJustBeenTold) {
  Connect(4);
  Report(3, "b", 700 * kMbit);
  Report(4, "b", 100 * kMbit);
  Decide();
  Report(1, "a", 200 * kMbit, kSome);
  Report(2, "a", 200 * kMbit, kSome);
  Decide(/*deaf=*/3);
  EXPECT_NEAR(static_cast<double>(Held(1, "a").count()), 50e6, 1e5);
  EXPECT_NEAR(static_cast<double>(Held(2, "a").count()), 50e6, 1e5);
  book_->OnNodeGone(4);
  Report(2, "a", 200 * kMbit, kSome);
  Pass(BudgetBook::kQuick);
  Decide(/*deaf=*/3);
  EXPECT_NEAR(static_cast<double>(Held(1, "a").count()), 50e6, 1e5);
  EXPECT_NEAR(static_cast<double>(Held(2, "a").count()), 150e6, 1e5);
}

TEST_F(LearnedBookTest, ANodeThatConnectsAgainKeepsItsShareBeforeItReports) {
  for (int round = 0; round < 3; ++round) {
    Report(1, "a", 2000 * kMbit, kSome);
    Report(2, "a", 2000 * kMbit, kSome);
    Report(3, "b", 2000 * kMbit, kSome);
    Pass(absl::Seconds(1));
    Decide();
  }
  EXPECT_NEAR(static_cast<double>(Held(1, "a").count()), 225e6, 1e5);
  Connect(2);
  Report(1, "a", 2000 * kMbit, kSome);
  Report(3, "b", 2000 * kMbit, kSome);
  Pass(absl::Seconds(1));
  EXPECT_EQ(Decide(), 0U);
  EXPECT_NEAR(static_cast<double>(Held(1, "a").count()), 225e6, 1e5);
  EXPECT_NEAR(static_cast<double>(Held(3, "b").count()), 450e6, 1e5);
}

TEST_F(LearnedBookTest, ANodeThatIsSilentKeepsItsGrantUntilItHasDecayed) {
  Report(1, "a", 900 * kMbit, kSome);
  Decide();
  const absl::Duration certain = (spec_.grant + spec_.hold) * 1.01;
  const absl::Time since = now_;
  while (now_ < since + certain - absl::Seconds(1)) {
    Pass(absl::Seconds(5));
    Report(2, "b", 900 * kMbit, kSome);
    EXPECT_EQ(nodes_[1].grants.sequence, 1U);
    Decide(/*deaf=*/1);
    if (now_ < since + certain) {
      ASSERT_LT(Held(2, "b"), 50 * kMbit);
    }
  }
  for (int i = 0; i < 40; ++i) {
    Pass(absl::Seconds(5));
    Report(2, "b", 900 * kMbit, kSome);
    Decide(1);
  }
  EXPECT_GT(Held(2, "b"), 850 * kMbit);
}

TEST_F(LearnedBookTest, ANodeThatIsGoneFreesItsGrantAtOnce) {
  Report(1, "a", 900 * kMbit, kSome);
  Decide();
  book_->OnNodeGone(1);
  Report(2, "b", 900 * kMbit, kSome);
  Decide();
  EXPECT_NEAR(static_cast<double>(Held(2, "b").count()), 900e6, 1e4);
}

TEST_F(LearnedBookTest, WhatWasSentBeforeAStreamCountsUntilTheNodeAppliesSomethingOfIt) {
  Report(1, "a", 900 * kMbit, kSome);
  Decide(/*deaf=*/1);  // It may have it or not.
  Connect(1);
  Report(1, "a", {});
  Report(2, "b", 900 * kMbit, kSome);
  Decide();
  EXPECT_LT(Held(2, "b"), kMbit);
  EXPECT_EQ(nodes_[1].grants.sequence, 1U);  // It is answered, so that it can say so.
  Report(1, "a", {});
  Pass(absl::Seconds(1));
  Decide();
  EXPECT_NEAR(static_cast<double>(Held(2, "b").count()), 900e6, 1e4);
}

TEST_F(LearnedBookTest, GrantsWhatIsLeftToThoseThatAreHeldBack) {
  Report(1, "a", 10 * kMbit, kSome);
  Report(2, "b", 10 * kMbit);
  Decide();
  EXPECT_GT(Held(1, "a"), 800 * kMbit);
  EXPECT_NEAR(static_cast<double>(Held(2, "b").count()), 10e6, 1e4);
}

TEST_F(LearnedBookTest, GrantsNothingBeyondATeamsMax) {
  spec_.teams[1].max = 50 * kMbit;
  book_->SetBudgets({spec_});
  Report(1, "a", 10 * kMbit, kSome);
  Decide();
  EXPECT_LE(Held(1, "a"), 50 * kMbit);
  EXPECT_GT(Held(1, "a"), 45 * kMbit);
}

TEST_F(LearnedBookTest, SaysNothingOfSmallChangesUntilTheGrantIsTwoFifthsOver) {
  Report(1, "a", 100 * kMbit);
  Decide();
  const BitRate before = Held(1, "a");
  int messages = 0;
  absl::Duration renewed;
  for (int i = 1; i <= 10; ++i) {
    Pass(absl::Seconds(5));
    Report(1, "a", (i % 2 == 0 ? 102 : 98) * kMbit);
    if (Decide() == 0) continue;
    ++messages;
    renewed = absl::Seconds(5 * i);
  }
  EXPECT_EQ(messages, 1);
  EXPECT_GE(renewed, spec_.grant * 0.35);
  EXPECT_LE(renewed, spec_.grant * 0.4 + absl::Seconds(5));
  EXPECT_NE(Held(1, "a"), before);
}

TEST_F(LearnedBookTest, AnOldReportIsNothing) {
  Report(1, "a", 100 * kMbit);
  nodes_[1].sequence = 0;
  EXPECT_FALSE(Report(1, "a", 900 * kMbit, kSome));
  EXPECT_EQ(book_->Standings(now_)[0].teams[1].demand, 100 * kMbit);
}

TEST_F(LearnedBookTest, WhatANodeCannotHaveAppliedIsNoAnswer) {
  Report(1, "a", 900 * kMbit, kSome);
  Decide();
  book_->OnReport(1, {.sequence = 50, .applied = 1000}, now_);
  EXPECT_GE(book_->Committed("internet", now_), 900 * kMbit);
}

TEST_F(LearnedBookTest, AbsurdNumbersDoNotOverflow) {
  constexpr BitRate kMost(~uint64_t{0});
  book_->OnReport(1,
                  {.sequence = 7,
                   .applied = kMost.count(),
                   .uses = {{"internet", "a", kMost, kMost, kMost, kMost, 1, 1, 1},
                            {"internet", "nobody", kMost, kMost, kMost, kMost, 1, 1, 1},
                            {"nothing", "a", kMost, kMost, kMost, kMost, 1, 1, 1}}},
                  now_);
  Report(2, "b", 10 * kMbit);
  book_->Decide(now_);
  EXPECT_LE(book_->Committed("internet", now_), 4 * spec_.capacity);
  book_->OnReport(1, {.sequence = kMost.count(), .applied = 1}, now_);
  book_->Decide(now_);
}

TEST_F(LearnedBookTest, ALowerCapacityHoldsOnceGrantsHaveBeenTakenBack) {
  Report(1, "a", 900 * kMbit, kSome);
  Decide();
  spec_.capacity = 500 * kMbit;
  book_->SetBudgets({spec_});
  EXPECT_GT(book_->Committed("internet", now_), spec_.capacity);
  Pass(absl::Seconds(1));
  nodes_[1].grants = book_->Decide(now_).at(0).second;
  EXPECT_LE(Held(1, "a"), 450 * kMbit);
  Report(1, "a", 900 * kMbit, kSome);
  EXPECT_LE(book_->Committed("internet", now_), spec_.capacity);
}

TEST_F(LearnedBookTest, ABudgetThatIsGoneTakesEverythingBack) {
  Report(1, "a", 900 * kMbit, kSome);
  Decide();
  book_->SetBudgets({});
  EXPECT_THAT(book_->Standings(now_), IsEmpty());
  Pass(absl::Seconds(1));
  EXPECT_EQ(Decide(), 1U);
  EXPECT_THAT(nodes_[1].grants.grants, IsEmpty());
  // The same budget would begin with what the node has until the node has said so.
  EXPECT_GT(book_->Committed("internet", now_), 900 * kMbit);
  Report(1, "", {});
  Decide();
  EXPECT_EQ(book_->Committed("internet", now_), BitRate());
}

TEST_F(LearnedBookTest, TeamsThatAreGoneFreeTheirGrantsWhenNodesSaySo) {
  Report(1, "a", 900 * kMbit, kSome);
  Decide();
  spec_.teams.erase(spec_.teams.begin() + 1);
  book_->SetBudgets({spec_});
  Report(1, "*", 900 * kMbit, kSome);
  Pass(absl::Seconds(1));
  Decide();
  EXPECT_LT(Held(1, "*"), kMbit);
  EXPECT_EQ(Held(1, "a"), BitRate());
  Report(1, "*", 900 * kMbit, kSome);
  Pass(absl::Seconds(1));
  Decide();
  EXPECT_NEAR(static_cast<double>(Held(1, "*").count()), 900e6, 1e4);
}

TEST_F(LearnedBookTest, ConnectionsAreSharedAsRatesAre) {
  spec_.connections = 1000;
  book_->SetBudgets({spec_});
  Report(1, "a", 300 * kMbit);
  Report(2, "b", 100 * kMbit);
  Decide();
  const uint32_t one = nodes_[1].grants.grants.at(0).connections;
  const uint32_t other = nodes_[2].grants.grants.at(0).connections;
  EXPECT_LE(one + other, 1000U);
  EXPECT_NEAR(one, 750, 2);
  EXPECT_NEAR(other, 250, 2);
}

TEST_F(LearnedBookTest, NobodyGetsAGrantWithoutAnyConnections) {
  spec_.connections = 1;  // 0 in a grant would mean no limit.
  book_->SetBudgets({spec_});
  Report(1, "a", 300 * kMbit);
  Report(2, "b", 100 * kMbit);
  Decide();
  EXPECT_EQ(nodes_[1].grants.grants.at(0).connections, 1U);
  EXPECT_EQ(nodes_[2].grants.grants.at(0).connections, 1U);
}

TEST_F(LearnedBookTest, ShowsNodesInTheirOrder) {
  Report(2, "b", 10 * kMbit);
  Report(1, "a", 20 * kMbit);
  Decide();
  Pass(absl::Seconds(3));
  const auto nodes = book_->NodesOf("internet", "", now_);
  ASSERT_THAT(nodes, SizeIs(2));
  EXPECT_EQ(nodes[0].node, 1U);
  EXPECT_EQ(nodes[0].demand, 20 * kMbit);
  EXPECT_EQ(nodes[0].age, absl::Seconds(3));
  EXPECT_THAT(book_->NodesOf("internet", "b", now_), SizeIs(1));
  EXPECT_THAT(book_->NodesOf("none", "", now_), IsEmpty());
}

TEST_F(BudgetBookTest, GrantsNothingThatSomebodyUnheardMayHave) {
  Start({1, 2, 3, kFar});
  for (const uint64_t node : {1U, 2U, 3U}) Report(node, "a", 100 * kMbit, kSome);
  EXPECT_EQ(Decide(), 3U);  // These are answers, so that nodes can say what they apply.
  EXPECT_EQ(Held(1, "a"), BitRate());
  EXPECT_EQ(book_->Standings(now_)[0].unknown, 900 * kMbit - BitRate(1));
  EXPECT_GT(book_->Standings(now_)[0].learning, spec_.grant + spec_.hold);
  book_->OnNodeGone(kFar);
  Pass(absl::Seconds(1));
  Decide();
  EXPECT_GT(Held(1, "a"), 99 * kMbit);
  EXPECT_EQ(book_->Standings(now_)[0].learning, absl::ZeroDuration());
}

TEST_F(BudgetBookTest, WhatNodesReportAsHeldIsKnownFromThenOn) {
  nodes_[1].grants.grants = {{"internet", "a", 600 * kMbit, 0, spec_.grant}};
  Start({1, 2, 3, kFar});
  Report(1, "a", 600 * kMbit);
  const BudgetStanding standing = book_->Standings(now_)[0];
  EXPECT_EQ(standing.unknown, 300 * kMbit - BitRate(1));
  EXPECT_EQ(standing.granted, 600 * kMbit);
  Decide();
  EXPECT_NEAR(static_cast<double>(Held(1, "a").count()), 600e6, 1e4);
}

TEST_F(BudgetBookTest, WithoutKnowingWhoThereIsOnlyTimeEndsTheLearning) {
  book_ = std::make_unique<BudgetBook>(now_);
  book_->SetBudgets({spec_});
  Connect(1);
  Report(1, "a", 900 * kMbit, kSome);
  Decide();
  EXPECT_EQ(Held(1, "a"), BitRate());
  Pass((spec_.grant + spec_.hold) * 1.01 + spec_.half_life * 1.02);
  Report(1, "a", 900 * kMbit, kSome);
  Decide();
  EXPECT_NEAR(static_cast<double>(Held(1, "a").count()), 450e6, 1e6);
  Pass(spec_.half_life * 10);
  EXPECT_EQ(book_->Standings(now_)[0].learning, absl::ZeroDuration());
}

TEST_F(BudgetBookTest, AShorterHoldIsNotReliedUpon) {
  for (const uint64_t node : {1U, 2U, 3U}) Report(node, "", {});
  Report(1, "a", 900 * kMbit, kSome);
  Decide();
  spec_.hold = absl::Seconds(10);
  spec_.half_life = absl::Seconds(1);
  book_->SetBudgets({spec_});
  Pass(absl::Seconds(400));
  EXPECT_GT(book_->Committed("internet", now_), 900 * kMbit);
  spec_.hold = absl::Seconds(1000);
  book_->SetBudgets({spec_});
  Pass(absl::Seconds(700));
  EXPECT_GT(book_->Committed("internet", now_), 900 * kMbit);
}

}  // namespace
}  // namespace spoke::ipam
