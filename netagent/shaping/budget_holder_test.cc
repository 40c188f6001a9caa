#include "netagent/shaping/budget_holder.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/random_seed.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using units::BitRate;

constexpr BitRate kMbit{1'000'000};
const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);

ResolvedBudget Budget(const std::string& name = "internet") {
  return {.name = name,
          .floor = 8 * kMbit,
          .refresh = absl::Seconds(5),
          .hold = absl::Seconds(300),
          .half_life = absl::Seconds(30)};
}

node_api::BudgetGrant Grant(const std::string& team, BitRate rate, uint32_t connections = 0) {
  return {.budget = "internet",
          .team = team,
          .rate = rate,
          .connections = connections,
          .duration = absl::Seconds(120)};
}

const std::vector<ResolvedBudget> kBudgets = {Budget()};
const std::vector<std::pair<std::string, std::string>> kVisionHere = {{"internet", "vision"}};

// Holds a grant of 800 Mbit and 100 connections since kStart.
BudgetHolder WithGrant() {
  BudgetHolder holder;
  holder.OnReportSent(1, kStart);
  EXPECT_TRUE(
      holder.OnGrants({.sequence = 1, .answers = 1, .grants = {Grant("vision", 800 * kMbit, 100)}},
                      kStart + absl::Seconds(1)));
  return holder;
}

GrantInForce OnlyRow(const BudgetHolder& holder, absl::Time now) {
  const auto rows = holder.At(now, kBudgets, kVisionHere);
  EXPECT_EQ(rows.size(), 1U);
  return rows.empty() ? GrantInForce{} : rows.front();
}

TEST(BudgetHolder, WithoutAGrantATeamHasItsPartOfTheFloor) {
  const BudgetHolder holder;
  EXPECT_THAT(holder.At(kStart, kBudgets, {{"internet", "vision"}, {"internet", "*"}}),
              ElementsAre(GrantInForce{.budget = "internet", .team = "*", .rate = 4 * kMbit},
                          GrantInForce{.budget = "internet", .team = "vision", .rate = 4 * kMbit}));
  EXPECT_EQ(holder.NextChange(kStart, kBudgets), absl::InfiniteFuture());
}

TEST(BudgetHolder, AnotherBudgetsTeamsTakeNothingOfTheFloor) {
  const auto rows = BudgetHolder().At(kStart, {Budget(), Budget("mirror")},
                                      {{"internet", "vision"}, {"mirror", "vision"}});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].rate, 8 * kMbit);
  EXPECT_EQ(rows[1].rate, 8 * kMbit);
}

TEST(BudgetHolder, GrantCountsFromWhenTheReportItAnswersWasSent) {
  BudgetHolder holder;
  holder.OnReportSent(7, kStart);
  holder.OnReportSent(8, kStart + absl::Seconds(5));
  ASSERT_TRUE(
      holder.OnGrants({.sequence = 1, .answers = 7, .grants = {Grant("vision", 800 * kMbit)}},
                      kStart + absl::Seconds(9)));
  EXPECT_EQ(holder.NextChange(kStart + absl::Seconds(9), kBudgets), kStart + absl::Seconds(120));
  const GrantInForce row = OnlyRow(holder, kStart + absl::Seconds(10));
  EXPECT_EQ(row.mode, GrantMode::kGranted);
  EXPECT_EQ(row.age, absl::Seconds(10));
  EXPECT_EQ(row.rate, 800 * kMbit);
  EXPECT_EQ(row.held, 800 * kMbit);
}

TEST(BudgetHolder, SmallGrantLeavesTheFloor) {
  BudgetHolder holder;
  holder.OnReportSent(1, kStart);
  ASSERT_TRUE(
      holder.OnGrants({.sequence = 1, .answers = 1, .grants = {Grant("vision", kMbit)}}, kStart));
  const GrantInForce row = OnlyRow(holder, kStart);
  EXPECT_EQ(row.mode, GrantMode::kGranted);
  EXPECT_EQ(row.rate, 8 * kMbit);
  EXPECT_EQ(row.held, kMbit);
}

TEST(BudgetHolder, WithoutAWordItHoldsThenHalvesDownToTheFloor) {
  const BudgetHolder holder = WithGrant();
  const absl::Time hold_end = kStart + absl::Seconds(420);
  struct {
    absl::Time at;
    GrantMode mode;
    BitRate rate;
    uint32_t connections;
  } const cases[] = {
      {kStart + absl::Seconds(119), GrantMode::kGranted, 800 * kMbit, 100},
      {kStart + absl::Seconds(120), GrantMode::kHolding, 800 * kMbit, 100},
      {hold_end - absl::Nanoseconds(1), GrantMode::kHolding, 800 * kMbit, 100},
      {hold_end, GrantMode::kDecaying, 400 * kMbit, 50},
      {hold_end + absl::Seconds(29), GrantMode::kDecaying, 400 * kMbit, 50},
      {hold_end + absl::Seconds(30), GrantMode::kDecaying, 200 * kMbit, 25},
      {hold_end + absl::Seconds(5 * 30), GrantMode::kDecaying, 800 * kMbit / 64, 1},
      {hold_end + absl::Seconds(6 * 30), GrantMode::kFloor, 8 * kMbit, 1},
      {hold_end + absl::Hours(1000), GrantMode::kFloor, 8 * kMbit, 1},
      {absl::InfiniteFuture(), GrantMode::kFloor, 8 * kMbit, 1},
  };
  for (const auto& c : cases) {
    const GrantInForce row = OnlyRow(holder, c.at);
    EXPECT_EQ(row.mode, c.mode) << c.at;
    EXPECT_EQ(row.rate, c.rate) << c.at;
    EXPECT_EQ(row.connections, c.connections) << c.at;
  }
}

TEST(BudgetHolder, WhatNamesConnectionsNeverMeansUnlimitedAsItDecays) {
  EXPECT_EQ(OnlyRow(WithGrant(), kStart + absl::Hours(9)).connections, 1U);
}

TEST(BudgetHolder, GrantThatRunsOutAtOnceIsNotKept) {
  BudgetHolder holder;
  holder.OnReportSent(1, kStart);
  node_api::BudgetGrant grant = Grant("vision", 800 * kMbit);
  grant.duration = -absl::Seconds(5);
  ASSERT_TRUE(holder.OnGrants({.sequence = 1, .answers = 1, .grants = {grant}}, kStart));
  std::vector<ResolvedBudget> budgets = kBudgets;
  budgets[0].hold = absl::ZeroDuration();
  budgets[0].half_life = absl::ZeroDuration();
  EXPECT_EQ(holder.At(kStart, budgets, kVisionHere)[0].rate, 8 * kMbit);
  EXPECT_EQ(holder.NextChange(kStart, budgets), absl::InfiniteFuture());
}

TEST(BudgetHolder, RefusesWhatIsOldOrAnswersNoReportOfTheStream) {
  BudgetHolder holder = WithGrant();
  holder.OnReportSent(2, kStart + absl::Seconds(5));
  const absl::Time now = kStart + absl::Seconds(6);
  EXPECT_FALSE(holder.OnGrants({.sequence = 1, .answers = 2, .grants = {}}, now));
  EXPECT_FALSE(holder.OnGrants({.sequence = 2, .answers = 3, .grants = {}}, now));
  EXPECT_FALSE(holder.OnGrants({.sequence = 2, .answers = 0, .grants = {}}, now));
  EXPECT_EQ(OnlyRow(holder, now).rate, 800 * kMbit);
  EXPECT_EQ(holder.applied(), 1U);
  EXPECT_TRUE(holder.OnGrants({.sequence = 5, .answers = 2, .grants = {}}, now));
  EXPECT_EQ(holder.applied(), 5U);
}

TEST(BudgetHolder, OneReportMayBeAnsweredTwice) {
  BudgetHolder holder = WithGrant();
  ASSERT_TRUE(
      holder.OnGrants({.sequence = 2, .answers = 1, .grants = {Grant("vision", 100 * kMbit)}},
                      kStart + absl::Seconds(50)));
  EXPECT_EQ(OnlyRow(holder, kStart + absl::Seconds(50)).age, absl::Seconds(50));
}

TEST(BudgetHolder, GrantsAreAllThereAre) {
  BudgetHolder holder = WithGrant();
  ASSERT_TRUE(holder.OnGrants({.sequence = 2, .answers = 1, .grants = {Grant("speech", kMbit)}},
                              kStart + absl::Seconds(2)));
  const GrantInForce row = holder.At(kStart + absl::Seconds(2), kBudgets, kVisionHere)[1];
  EXPECT_EQ(row.team, "vision");
  EXPECT_EQ(row.mode, GrantMode::kFloor);
  EXPECT_EQ(row.rate, 8 * kMbit);
}

TEST(BudgetHolder, OfTwoGrantsForOneTeamTheLowerHolds) {
  BudgetHolder holder;
  holder.OnReportSent(1, kStart);
  ASSERT_TRUE(holder.OnGrants({.sequence = 1,
                               .answers = 1,
                               .grants = {Grant("vision", 90 * kMbit), Grant("vision", 20 * kMbit),
                                          Grant("vision", 50 * kMbit)}},
                              kStart));
  EXPECT_EQ(OnlyRow(holder, kStart).rate, 20 * kMbit);
}

TEST(BudgetHolder, NewStreamKeepsWhatIsHeldAndForgetsSequences) {
  BudgetHolder holder = WithGrant();
  holder.OnStream();
  const absl::Time now = kStart + absl::Seconds(60);
  EXPECT_EQ(holder.applied(), 0U);
  EXPECT_EQ(OnlyRow(holder, now).rate, 800 * kMbit);
  // The answer is a straggler of the old stream.
  EXPECT_FALSE(holder.OnGrants({.sequence = 2, .answers = 1, .grants = {}}, now));
  holder.OnReportSent(1, now);
  EXPECT_TRUE(
      holder.OnGrants({.sequence = 1, .answers = 1, .grants = {Grant("vision", kMbit)}}, now));
  EXPECT_EQ(OnlyRow(holder, now).held, kMbit);
  EXPECT_EQ(OnlyRow(holder, now).age, absl::ZeroDuration());
}

TEST(BudgetHolder, WhatIsHeldWithoutPodsIsReportedAndGetsNoFloor) {
  const BudgetHolder holder = WithGrant();
  const auto rows = holder.At(kStart + absl::Seconds(1), kBudgets, {{"internet", "speech"}});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].team, "speech");
  EXPECT_EQ(rows[0].rate, 8 * kMbit);
  EXPECT_EQ(rows[1].team, "vision");
  EXPECT_EQ(rows[1].rate, 800 * kMbit);
  EXPECT_EQ(holder.At(kStart + absl::Hours(9), kBudgets, {{"internet", "speech"}}).size(), 1U);
}

TEST(BudgetHolder, BudgetsThatAreGoneArePassedOver) {
  const BudgetHolder holder = WithGrant();
  EXPECT_THAT(holder.At(kStart, {}, kVisionHere), IsEmpty());
  EXPECT_EQ(holder.NextChange(kStart, {}), absl::InfiniteFuture());
}

TEST(BudgetHolder, RemembersTheLastReportsOnly) {
  BudgetHolder holder;
  for (uint64_t i = 1; i <= 1000; ++i) holder.OnReportSent(i, kStart);
  EXPECT_FALSE(holder.OnGrants({.sequence = 1, .answers = 1, .grants = {}}, kStart));
  EXPECT_TRUE(holder.OnGrants({.sequence = 1, .answers = 900, .grants = {}}, kStart));
}

// Returns what the rows say, without their ages.
std::vector<GrantInForce> Ageless(std::vector<GrantInForce> rows) {
  for (GrantInForce& row : rows) row.age = absl::ZeroDuration();
  return rows;
}

TEST(BudgetHolder, NothingChangesBeforeNextChangeAndNothingEverGrows) {
  testing_support::Random random;
  for (int round = 0; round < 200; ++round) {
    std::vector<ResolvedBudget> budgets = {Budget()};
    budgets[0].floor =
        random.OneIn(3) ? BitRate() : BitRate(random.Between(1, (10 * kMbit).count()));
    budgets[0].hold = absl::Milliseconds(random.Between(0, 5000));
    budgets[0].half_life = absl::Milliseconds(random.Between(1, 3000));
    BudgetHolder holder;
    holder.OnReportSent(1, kStart);
    node_api::BudgetGrant grant =
        Grant("vision", BitRate(random.Between(0, (1000 * kMbit).count())),
              static_cast<uint32_t>(random.Between(0, 1000)));
    grant.duration = absl::Milliseconds(random.Between(0, 5000));
    ASSERT_TRUE(holder.OnGrants({.sequence = 1, .answers = 1, .grants = {grant}}, kStart));
    absl::Time now = kStart;
    for (int step = 0; step < 100; ++step) {
      const auto rows = holder.At(now, budgets, kVisionHere);
      ASSERT_EQ(rows.size(), 1U);
      ASSERT_GE(rows[0].rate, budgets[0].floor);
      const absl::Time next = holder.NextChange(now, budgets);
      const absl::Time before =
          next == absl::InfiniteFuture() ? now + absl::Hours(1) : next - absl::Nanoseconds(1);
      ASSERT_GE(before, now);
      EXPECT_EQ(Ageless(holder.At(before, budgets, kVisionHere)), Ageless(rows));
      if (next == absl::InfiniteFuture()) break;
      ASSERT_LE(holder.At(next, budgets, kVisionHere)[0].rate, rows[0].rate);
      now = next;
    }
    EXPECT_EQ(holder.NextChange(now, budgets), absl::InfiniteFuture()) << "never settles";
  }
}

}  // namespace
}  // namespace spoke::netagent
