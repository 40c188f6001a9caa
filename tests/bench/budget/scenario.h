// The events of the simulated world, and what is measured of it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/bench/budget/world.h"

namespace spoke::budget_sim {

struct ShiftResult {
  std::string name;
  double use95_s = 0;  // The time from the shift until 95 % of what could be used is, and stays so.
  double use_at_rest = 0;  // The share of what could be used, before the next shift.
  // The error of the worst team's use against its exact share, before the next shift.
  double team_error = 0;
  double node_error = 0;   // The worst error of a team on a node, of those with a thousandth of a
                           // node's average or more.
  bool in_faults = false;  // Whether not all that could be used can be reached.
};

struct ScenarioResult {
  WorldCounts counts;
  std::vector<ShiftResult> shifts;
  double simulated_s = 0;
  double use95_s = 0;         // The worst of those without faults.
  double fairness_error = 0;  // The error of teams, the worst of those without faults.
  double shrink_s = 0;  // The time from a capacity that is less until no more than that is usable.

  bool Lawful() const {
    return counts.over_capacity_ticks == 0 && counts.over_committed_ticks == 0 &&
           counts.below_usable_ticks == 0;
  }
};

struct ScenarioOptions {
  WorldOptions world;
  bool outage = true;  // Whether there is an absence of the server that outlives all grants.
  std::function<double()> cpu_clock;
  std::function<void(const ShiftResult&)> progress;
};

ScenarioResult RunScenario(const ScenarioOptions& options);

}  // namespace spoke::budget_sim
