// Named scenarios: a script for each production failure that others have published and that could
// happen to us, and for each defect that was ever found here. Each says where it comes from, and
// which faults it reaches; one that does not reach them any more fails.
#pragma once

#include <string_view>
#include <vector>

#include "tests/sim/simulation.h"

namespace spoke::sim {

struct Scenario {
  std::string_view name;
  std::string_view origin;
  std::vector<Fault> reaches;
  void (*play)(Simulation& world);
  size_t servers = 1;
};

const std::vector<Scenario>& AllScenarios();

// Plays it, lets all become well, and judges; a fault that was not reached is a violation too.
Outcome Play(const Scenario& scenario, bool print);

}  // namespace spoke::sim
