#include "gtest/gtest.h"
#include "tests/sim/scenarios.h"
#include "tests/sim/simulation.h"

namespace spoke::sim {
namespace {

// As many as half a minute allows in a build with sanitizers.
constexpr uint64_t kFirstSeed = 1;
constexpr uint64_t kSeeds = 12;

TEST(SimulationTest, TheSameSeedGivesTheSameStory) {
  const RunOptions options{.seed = 7, .faults_for = absl::Minutes(10)};
  const Outcome one = RunSimulation(options);
  const Outcome other = RunSimulation(options);
  EXPECT_GT(one.trace_lines, 1000U);
  EXPECT_EQ(one.trace_lines, other.trace_lines);
  EXPECT_EQ(one.trace_hash, other.trace_hash);
  EXPECT_NE(one.trace_hash, RunSimulation({.seed = 8, .faults_for = absl::Minutes(10)}).trace_hash);
}

TEST(SimulationTest, NoLawIsBrokenAndEveryFaultHappens) {
  Coverage coverage;
  for (uint64_t seed = kFirstSeed; seed < kFirstSeed + kSeeds; ++seed) {
    const Outcome outcome = RunSimulation({.seed = seed});
    EXPECT_EQ(outcome.violation, std::nullopt)
        << "scripts/sim.sh --seed " << seed << " --trace tells the story; it ends:\n"
        << outcome.end_of_story;
    coverage += outcome.coverage;
  }
  for (size_t i = 0; i < kFaults; ++i) {
    EXPECT_GT(coverage.of(static_cast<Fault>(i)), 0U) << NameOf(static_cast<Fault>(i));
  }
}

class ScenarioTest : public testing::TestWithParam<Scenario> {};

TEST_P(ScenarioTest, EveryLawHolds) {
  const Outcome outcome = Play(GetParam(), /*print=*/false);
  EXPECT_EQ(outcome.violation, std::nullopt) << GetParam().origin << "; the story ends:\n"
                                             << outcome.end_of_story;
}

INSTANTIATE_TEST_SUITE_P(All, ScenarioTest, testing::ValuesIn(AllScenarios()),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace spoke::sim
