// Named runs: one for each way in which fleets are known to have failed, ours or others', with what
// each must reach. A scenario that no longer reaches its fault proves nothing, and fails.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/sim/run.h"

namespace spoke::sim {

struct Promise {
  std::string what;    // A count of the trace.
  uint64_t least = 1;  // How often it happens.
};

struct Scenario {
  std::string name;
  std::string origin;  // Who failed so.
  RunSettings run;
  std::vector<Promise> promises;
};

// Returns all of them, in the order in which they were added.
std::vector<Scenario> AllScenarios();

// Returns which promises the run has not kept; empty: none.
std::string BrokenPromises(const Scenario& scenario, const RunResult& result);

}  // namespace spoke::sim
