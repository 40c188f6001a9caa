// The use that everybody would have if all that may be granted were divided exactly, from what pods
// would use.
#pragma once

#include <vector>

#include "ipam-server/budget/budget_spec.h"

namespace spoke::budget_sim {

struct Options {
  size_t team = 0;  // The team in the spec.
  double rate = 0;
};

struct FairUse {
  double all = 0;
  std::vector<double> by_team;
  std::vector<double> by_request;
};

// Divides by sorting, and so independently of how the server does it.
FairUse ExactFairUse(const ipam::BudgetSpec& spec, double pool,
                     const std::vector<Options>& options);

}  // namespace spoke::budget_sim
