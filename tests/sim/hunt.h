// Finding: which runs find a defect, and what is left of a plan that has found something when all
// that does not matter is left out.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "tests/sim/run.h"

namespace spoke::sim {

// The number and the name of each defect of mutants.txt.
const std::map<int, std::string>& MutantNames();

struct Found {
  std::string by;  // The name of a scenario, or "seed 7".
  Violation violation;
  int runs = 0;  // How many it took.
};
// Runs all scenarios, and then the seeds from 1 to `seeds`, with the present mutant, until one of
// them breaks a law. nullopt: none does.
std::optional<Found> Hunt(uint64_t seeds);

// Returns the settings with as few events as still break the same law, and the time cut off at
// which they do. Ends after about `runs` runs.
RunSettings Shrink(const RunSettings& settings, int runs);

}  // namespace spoke::sim
