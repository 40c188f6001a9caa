// One run of a simulated fleet: a seed or a plan, and what came of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "tests/sim/plan.h"
#include "tests/sim/world.h"

namespace spoke::sim {

struct RunSettings {
  WorldSettings world;
  Plan plan;
  absl::Duration until = absl::Minutes(30);
  // How long everything has after that to come to agree, with no more faults. Zero: the run is cut
  // off there, and what is to be so in the end (law 10) is not asked.
  absl::Duration settling = absl::Minutes(16);
};

struct RunResult {
  std::optional<Violation> violation;
  absl::Duration at;  // When that was, from the beginning.
  uint64_t hash = 0;  // The trace's.
  std::string trace;  // Empty unless kept.
  std::map<std::string, uint64_t, std::less<>> counts;
  double node_hours = 0;
  uint64_t steps = 0;
};

RunResult RunPlan(const RunSettings& settings);

// Returns what `seed` does to a fleet: its size, its servers, and its plan.
// `nodes`: instead of what the seed says; 0: as it says. `events`: how much befalls a node in an
// hour, faults and pods that come or go together; what is less than 0: as much as PlanSettings say.
RunSettings SettingsOfSeed(uint64_t seed, int nodes = 0, double events = -1);

}  // namespace spoke::sim
