#include "netagent/shaping/budget_holder.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/random_seed.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint64_t kMbit = 1'000'000;
const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);

ResolvedBudget Budget(const std::string& name = "internet") {
  return {.name = name,
          .floor = 8 * kMbit,
          .refresh = absl::Seconds(5),
          .hold = absl::Seconds(300),
          .half_life = absl::Seconds(30)};
}

BudgetLease Lease(const std::string& team, uint64_t rate, uint32_t connections = 0) {
  return {.budget = "internet",
          .team = team,
          .rate = rate,
          .connections = connections,
          .duration = absl::Seconds(120)};
}

const std::vector<ResolvedBudget> kBudgets = {Budget()};
const std::vector<std::pair<std::string, std::string>> kVisionHere = {{"internet", "vision"}};

// Holds a lease of 800 Mbit and 100 connections since kStart.
BudgetHolder WithLease() {
  BudgetHolder holder;
  holder.OnReportSent(1, kStart);
  EXPECT_TRUE(
      holder.OnLeases({.sequence = 1, .answers = 1, .leases = {Lease("vision", 800 * kMbit, 100)}},
                      kStart + absl::Seconds(1)));
  return holder;
}

LeaseInForce OnlyRow(const BudgetHolder& holder, absl::Time now) {
  const auto rows = holder.At(now, kBudgets, kVisionHere);
  EXPECT_EQ(rows.size(), 1U);
  return rows.empty() ? LeaseInForce{} : rows.front();
}

TEST(BudgetHolder, WithoutALeaseATeamHasItsPartOfTheFloor) {
  const BudgetHolder holder;
  EXPECT_THAT(holder.At(kStart, kBudgets, {{"internet", "vision"}, {"internet", "*"}}),
              ElementsAre(LeaseInForce{.budget = "internet", .team = "*", .rate = 4 * kMbit},
                          LeaseInForce{.budget = "internet", .team = "vision", .rate = 4 * kMbit}));
  EXPECT_EQ(holder.NextChange(kStart, kBudgets), absl::InfiniteFuture());
}

TEST(BudgetHolder, AnotherBudgetsTeamsTakeNothingOfTheFloor) {
  const auto rows = BudgetHolder().At(kStart, {Budget(), Budget("mirror")},
                                      {{"internet", "vision"}, {"mirror", "vision"}});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].rate, 8 * kMbit);
  EXPECT_EQ(rows[1].rate, 8 * kMbit);
}

TEST(BudgetHolder, LeaseCountsFromWhenTheReportItAnswersWasSent) {
  BudgetHolder holder;
  holder.OnReportSent(7, kStart);
  holder.OnReportSent(8, kStart + absl::Seconds(5));
  ASSERT_TRUE(
      holder.OnLeases({.sequence = 1, .answers = 7, .leases = {Lease("vision", 800 * kMbit)}},
                      kStart + absl::Seconds(9)));
  EXPECT_EQ(holder.NextChange(kStart + absl::Seconds(9), kBudgets), kStart + absl::Seconds(120));
  const LeaseInForce row = OnlyRow(holder, kStart + absl::Seconds(10));
  EXPECT_EQ(row.mode, LeaseMode::kLeased);
  EXPECT_EQ(row.age, absl::Seconds(10));
  EXPECT_EQ(row.rate, 800 * kMbit);
  EXPECT_EQ(row.held, 800 * kMbit);
}

TEST(BudgetHolder, SmallLeaseLeavesTheFloor) {
  BudgetHolder holder;
  holder.OnReportSent(1, kStart);
  ASSERT_TRUE(
      holder.OnLeases({.sequence = 1, .answers = 1, .leases = {Lease("vision", kMbit)}}, kStart));
  const LeaseInForce row = OnlyRow(holder, kStart);
  EXPECT_EQ(row.mode, LeaseMode::kLeased);
  EXPECT_EQ(row.rate, 8 * kMbit);
  EXPECT_EQ(row.held, kMbit);
}

TEST(BudgetHolder, WithoutAWordItHoldsThenHalvesDownToTheFloor) {
  const BudgetHolder holder = WithLease();
  const absl::Time hold_end = kStart + absl::Seconds(420);
  struct {
    absl::Time at;
    LeaseMode mode;
    uint64_t rate;
    uint32_t connections;
  } const cases[] = {
      {kStart + absl::Seconds(119), LeaseMode::kLeased, 800 * kMbit, 100},
      {kStart + absl::Seconds(120), LeaseMode::kHolding, 800 * kMbit, 100},
      {hold_end - absl::Nanoseconds(1), LeaseMode::kHolding, 800 * kMbit, 100},
      {hold_end, LeaseMode::kDecaying, 400 * kMbit, 50},
      {hold_end + absl::Seconds(29), LeaseMode::kDecaying, 400 * kMbit, 50},
      {hold_end + absl::Seconds(30), LeaseMode::kDecaying, 200 * kMbit, 25},
      {hold_end + absl::Seconds(5 * 30), LeaseMode::kDecaying, 800 * kMbit / 64, 1},
      {hold_end + absl::Seconds(6 * 30), LeaseMode::kFloor, 8 * kMbit, 1},
      {hold_end + absl::Hours(1000), LeaseMode::kFloor, 8 * kMbit, 1},
      {absl::InfiniteFuture(), LeaseMode::kFloor, 8 * kMbit, 1},
  };
  for (const auto& c : cases) {
    const LeaseInForce row = OnlyRow(holder, c.at);
    EXPECT_EQ(row.mode, c.mode) << c.at;
    EXPECT_EQ(row.rate, c.rate) << c.at;
    EXPECT_EQ(row.connections, c.connections) << c.at;
  }
}

TEST(BudgetHolder, WhatNamesConnectionsNeverMeansUnlimitedAsItDecays) {
  EXPECT_EQ(OnlyRow(WithLease(), kStart + absl::Hours(9)).connections, 1U);
}

TEST(BudgetHolder, LeaseThatRunsOutAtOnceIsNotKept) {
  BudgetHolder holder;
  holder.OnReportSent(1, kStart);
  BudgetLease lease = Lease("vision", 800 * kMbit);
  lease.duration = -absl::Seconds(5);
  ASSERT_TRUE(holder.OnLeases({.sequence = 1, .answers = 1, .leases = {lease}}, kStart));
  std::vector<ResolvedBudget> budgets = kBudgets;
  budgets[0].hold = absl::ZeroDuration();
  budgets[0].half_life = absl::ZeroDuration();
  EXPECT_EQ(holder.At(kStart, budgets, kVisionHere)[0].rate, 8 * kMbit);
  EXPECT_EQ(holder.NextChange(kStart, budgets), absl::InfiniteFuture());
}

TEST(BudgetHolder, RefusesWhatIsOldOrAnswersNoReportOfTheStream) {
  BudgetHolder holder = WithLease();
  holder.OnReportSent(2, kStart + absl::Seconds(5));
  const absl::Time now = kStart + absl::Seconds(6);
  EXPECT_FALSE(holder.OnLeases({.sequence = 1, .answers = 2, .leases = {}}, now));
  EXPECT_FALSE(holder.OnLeases({.sequence = 2, .answers = 3, .leases = {}}, now));
  EXPECT_FALSE(holder.OnLeases({.sequence = 2, .answers = 0, .leases = {}}, now));
  EXPECT_EQ(OnlyRow(holder, now).rate, 800 * kMbit);
  EXPECT_EQ(holder.applied(), 1U);
  EXPECT_TRUE(holder.OnLeases({.sequence = 5, .answers = 2, .leases = {}}, now));
  EXPECT_EQ(holder.applied(), 5U);
}

TEST(BudgetHolder, OneReportMayBeAnsweredTwice) {
  BudgetHolder holder = WithLease();
  ASSERT_TRUE(
      holder.OnLeases({.sequence = 2, .answers = 1, .leases = {Lease("vision", 100 * kMbit)}},
                      kStart + absl::Seconds(50)));
  EXPECT_EQ(OnlyRow(holder, kStart + absl::Seconds(50)).age, absl::Seconds(50));
}

TEST(BudgetHolder, LeasesAreAllThereAre) {
  BudgetHolder holder = WithLease();
  ASSERT_TRUE(holder.OnLeases({.sequence = 2, .answers = 1, .leases = {Lease("speech", kMbit)}},
                              kStart + absl::Seconds(2)));
  const LeaseInForce row = holder.At(kStart + absl::Seconds(2), kBudgets, kVisionHere)[1];
  EXPECT_EQ(row.team, "vision");
  EXPECT_EQ(row.mode, LeaseMode::kFloor);
  EXPECT_EQ(row.rate, 8 * kMbit);
}

TEST(BudgetHolder, OfTwoLeasesForOneTeamTheLowerHolds) {
  BudgetHolder holder;
  holder.OnReportSent(1, kStart);
  ASSERT_TRUE(holder.OnLeases({.sequence = 1,
                               .answers = 1,
                               .leases = {Lease("vision", 90 * kMbit), Lease("vision", 20 * kMbit),
                                          Lease("vision", 50 * kMbit)}},
                              kStart));
  EXPECT_EQ(OnlyRow(holder, kStart).rate, 20 * kMbit);
}

TEST(BudgetHolder, NewStreamKeepsWhatIsHeldAndForgetsSequences) {
  BudgetHolder holder = WithLease();
  holder.OnStream();
  const absl::Time now = kStart + absl::Seconds(60);
  EXPECT_EQ(holder.applied(), 0U);
  EXPECT_EQ(OnlyRow(holder, now).rate, 800 * kMbit);
  // A straggler of the old stream.
  EXPECT_FALSE(holder.OnLeases({.sequence = 2, .answers = 1, .leases = {}}, now));
  holder.OnReportSent(1, now);
  EXPECT_TRUE(
      holder.OnLeases({.sequence = 1, .answers = 1, .leases = {Lease("vision", kMbit)}}, now));
  EXPECT_EQ(OnlyRow(holder, now).held, kMbit);
  EXPECT_EQ(OnlyRow(holder, now).age, absl::ZeroDuration());
}

TEST(BudgetHolder, WhatIsHeldWithoutPodsIsReportedAndGetsNoFloor) {
  const BudgetHolder holder = WithLease();
  const auto rows = holder.At(kStart + absl::Seconds(1), kBudgets, {{"internet", "speech"}});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].team, "speech");
  EXPECT_EQ(rows[0].rate, 8 * kMbit);
  EXPECT_EQ(rows[1].team, "vision");
  EXPECT_EQ(rows[1].rate, 800 * kMbit);
  EXPECT_EQ(holder.At(kStart + absl::Hours(9), kBudgets, {{"internet", "speech"}}).size(), 1U);
}

TEST(BudgetHolder, BudgetsThatAreGoneArePassedOver) {
  const BudgetHolder holder = WithLease();
  EXPECT_THAT(holder.At(kStart, {}, kVisionHere), IsEmpty());
  EXPECT_EQ(holder.NextChange(kStart, {}), absl::InfiniteFuture());
}

TEST(BudgetHolder, RemembersTheLastReportsOnly) {
  BudgetHolder holder;
  for (uint64_t i = 1; i <= 1000; ++i) holder.OnReportSent(i, kStart);
  EXPECT_FALSE(holder.OnLeases({.sequence = 1, .answers = 1, .leases = {}}, kStart));
  EXPECT_TRUE(holder.OnLeases({.sequence = 1, .answers = 900, .leases = {}}, kStart));
}

// What a row says but for its age.
std::vector<LeaseInForce> Ageless(std::vector<LeaseInForce> rows) {
  for (LeaseInForce& row : rows) row.age = absl::ZeroDuration();
  return rows;
}

TEST(BudgetHolder, NothingChangesBeforeNextChangeAndNothingEverGrows) {
  testing_support::Random random;
  for (int round = 0; round < 200; ++round) {
    std::vector<ResolvedBudget> budgets = {Budget()};
    budgets[0].floor = random.OneIn(3) ? 0 : random.Between(1, 10 * kMbit);
    budgets[0].hold = absl::Milliseconds(random.Between(0, 5000));
    budgets[0].half_life = absl::Milliseconds(random.Between(1, 3000));
    BudgetHolder holder;
    holder.OnReportSent(1, kStart);
    BudgetLease lease = Lease("vision", random.Between(0, 1000 * kMbit),
                              static_cast<uint32_t>(random.Between(0, 1000)));
    lease.duration = absl::Milliseconds(random.Between(0, 5000));
    ASSERT_TRUE(holder.OnLeases({.sequence = 1, .answers = 1, .leases = {lease}}, kStart));
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
