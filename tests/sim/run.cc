#include "tests/sim/run.h"

namespace spoke::sim {
namespace {

constexpr int kMostOnAzure = 30;
// A machine that was reimaged again and again has lost many.
constexpr absl::Duration kLongestSettling = absl::Hours(2);

}  // namespace

RunSettings SettingsOfSeed(uint64_t seed, int nodes, double events) {
  Random random = RandomFor(seed, "size");
  RunSettings settings;
  settings.world.seed = seed;
  settings.world.nodes = static_cast<int>(2 + random.Below(7));
  if (nodes > 0) settings.world.nodes = nodes;
  if (nodes > 30) settings.world.pool = "10.0.0.0/12";
  // With thousands of nodes Azure's limits decide how long each round of them takes.
  settings.world.azure =
      settings.world.nodes <= kMostOnAzure && RandomFor(seed, "cloud").Chance(0.3);
  if (RandomFor(seed, "blocks").Chance(0.25)) settings.world.block_length = 28;
  settings.world.ipv6 = RandomFor(seed, "ipv6").Chance(0.25);
  settings.world.team_pool = !settings.world.azure && RandomFor(seed, "team").Chance(0.25);
  settings.world.servers = random.Chance(0.5) ? 1 : 3;
  PlanSettings plan{
      .nodes = settings.world.nodes, .servers = settings.world.servers, .until = settings.until};
  if (events >= 0) plan.events_per_node_hour = events;
  settings.plan = RandomPlan(seed, plan);
  settings.world.budget = RandomFor(seed, "budget").Chance(0.35);
  return settings;
}

RunResult RunPlan(const RunSettings& settings) {
  World world(settings.world);
  world.Follow(settings.plan);
  world.Run(settings.until);
  if (!world.laws().broken() && settings.settling > absl::ZeroDuration()) {
    world.Heal();
    const absl::Duration step = absl::Minutes(1);
    absl::Duration settled;
    while (settled < settings.settling ||
           (settled < kLongestSettling && !world.laws().broken() && world.GivesUpLost())) {
      world.Run(settings.until + settled + step);
      world.Tidy();
      settled += step;
    }
    world.Run(settings.until + settled + step);
    if (!world.laws().broken()) world.CheckSettled();
  }
  RunResult result{.violation = world.laws().broken(),
                   .at = {},
                   .hash = world.trace().hash(),
                   .trace = world.trace().text(),
                   .counts = world.trace().counts(),
                   .node_hours = world.node_hours(),
                   .steps = world.schedule().steps()};
  if (result.violation) result.at = result.violation->at - world.schedule().began();
  return result;
}

}  // namespace spoke::sim
