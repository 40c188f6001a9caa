#include "tests/bench/budget/fair_use.h"

#include <algorithm>

#include "lib/base/max_min.h"

namespace spoke::budget_sim {

FairUse ExactFairUse(const ipam::BudgetSpec& spec, double pool,
                     const std::vector<Options>& options) {
  std::vector<base::Claimant> teams;
  for (const ipam::BudgetTeam& team : spec.teams) {
    teams.push_back({.weight = team.weight,
                     .min = static_cast<double>(team.min.count()),
                     .max = static_cast<double>(team.max.count())});
  }
  std::vector<std::vector<size_t>> of_team(teams.size());
  for (size_t i = 0; i < options.size(); ++i) {
    teams[options[i].team].demand += options[i].rate;
    of_team[options[i].team].push_back(i);
  }
  FairUse fair{.by_team = base::WeightedMaxMin(pool, teams)};
  fair.by_request.resize(options.size());
  for (size_t team = 0; team < teams.size(); ++team) {
    fair.all += fair.by_team[team];
    std::vector<size_t>& order = of_team[team];
    std::sort(order.begin(), order.end(),
              [&options](size_t a, size_t b) { return options[a].rate < options[b].rate; });
    double rest = fair.by_team[team];
    for (size_t i = 0; i < order.size(); ++i) {
      const double part = rest / static_cast<double>(order.size() - i);
      fair.by_request[order[i]] = std::min(options[order[i]].rate, part);
      rest -= fair.by_request[order[i]];
    }
  }
  return fair;
}

}  // namespace spoke::budget_sim
