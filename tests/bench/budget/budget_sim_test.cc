#include "gtest/gtest.h"
#include "tests/bench/budget/scenario.h"
#include "tests/support/random_seed.h"

namespace spoke::budget_sim {
namespace {

TEST(BudgetSim, NeverUsesMoreThanTheCapacityWhateverHappens) {
  ScenarioOptions options;
  options.world.seed = testing_support::RandomSeed();
  options.world.agents = 40;
  options.world.teams = 20;
  options.world.loss = 0.05;
  const ScenarioResult result = RunScenario(options);
  EXPECT_EQ(result.counts.over_capacity_ticks, 0U);
  EXPECT_EQ(result.counts.over_committed_ticks, 0U);
  EXPECT_EQ(result.counts.below_usable_ticks, 0U);
  EXPECT_GT(result.counts.messages, 0U);
}

// Tests a scenario of a fixed seed: how fast it is, is judged by the benchmark.
TEST(BudgetSim, FollowsDemandAndEndsUpFair) {
  ScenarioOptions options;
  options.outage = false;
  options.world.agents = 150;
  const ScenarioResult result = RunScenario(options);
  EXPECT_TRUE(result.Lawful());
  EXPECT_LE(result.use95_s, 10);
  EXPECT_LE(result.fairness_error, 0.05);
  for (const ShiftResult& shift : result.shifts) {
    if (!shift.in_faults) {
      EXPECT_GE(shift.use_at_rest, 0.97) << shift.name;
    }
  }
}

// This is the same without anything that an agent tells earlier than it must: slower, and as
// lawful.
TEST(BudgetSim, IsLawfulWithAgentsThatTellLittle) {
  ScenarioOptions options;
  options.outage = false;
  options.world.agents = 40;
  options.world.teams = 20;
  options.world.seed = testing_support::RandomSeed();
  options.world.habits = kQuietHabits;
  EXPECT_TRUE(RunScenario(options).Lawful());
}

TEST(BudgetSim, HappensAgainWithTheSameSeed) {
  ScenarioOptions options;
  options.outage = false;
  options.world.agents = 20;
  options.world.teams = 10;
  const ScenarioResult one = RunScenario(options);
  const ScenarioResult other = RunScenario(options);
  EXPECT_EQ(one.counts.messages, other.counts.messages);
  EXPECT_EQ(one.counts.reports, other.counts.reports);
  EXPECT_EQ(one.use95_s, other.use95_s);
}

}  // namespace
}  // namespace spoke::budget_sim
