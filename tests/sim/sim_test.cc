// The default runs of the simulated fleet.
#include "gtest/gtest.h"
#include "tests/sim/run.h"

namespace spoke::sim {
namespace {

TEST(Sim, TheSameSeedTellsTheSameStory) {
  RunSettings settings = SettingsOfSeed(1);
  settings.world.keep_trace = true;
  const RunResult first = RunPlan(settings);
  const RunResult second = RunPlan(settings);
  EXPECT_GT(first.trace.size(), 10'000U);
  EXPECT_EQ(first.trace, second.trace);
  EXPECT_EQ(first.hash, second.hash);
}

TEST(Sim, NoSeedBreaksALaw) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const RunResult result = RunPlan(SettingsOfSeed(seed));
    if (!result.violation) continue;
    ADD_FAILURE() << "law " << result.violation->law << " is broken at " << result.at << ": "
                  << result.violation->what << "\nscripts/sim.sh --seed " << seed << " --trace";
  }
}

}  // namespace
}  // namespace spoke::sim
