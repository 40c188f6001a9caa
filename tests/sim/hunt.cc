#include "tests/sim/hunt.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "fmt/core.h"
#include "tests/sim/mutant_names.h"
#include "tests/sim/scenarios/scenarios.h"

namespace spoke::sim {

const std::map<int, std::string>& MutantNames() {
  static const std::map<int, std::string> names(std::begin(kMutantNames), std::end(kMutantNames));
  return names;
}

std::optional<Found> Hunt(uint64_t seeds) {
  int runs = 0;
  for (const Scenario& scenario : AllScenarios()) {
    ++runs;
    const RunResult result = RunPlan(scenario.run);
    if (result.violation) return Found{scenario.name, *result.violation, runs};
  }
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    ++runs;
    const RunResult result = RunPlan(SettingsOfSeed(seed));
    if (result.violation) return Found{fmt::format("seed {}", seed), *result.violation, runs};
  }
  return std::nullopt;
}

RunSettings Shrink(const RunSettings& settings, int runs) {
  RunSettings best = settings;
  const RunResult first = RunPlan(settings);
  if (!first.violation) return best;
  const int law = first.violation->law;
  // What comes after the violation has no part in it, unless it was looked for at the end only.
  if (law != 10) best.until = std::min(best.until, first.at + absl::Milliseconds(1));
  std::erase_if(best.plan, [&](const PlannedEvent& event) { return event.at > best.until; });
  size_t part = std::max<size_t>(1, best.plan.size() / 2);
  while (runs > 0) {
    bool smaller = false;
    for (size_t begin = 0; begin < best.plan.size() && runs > 0; --runs) {
      RunSettings less = best;
      const auto from = less.plan.begin() + static_cast<std::ptrdiff_t>(begin);
      const size_t count = std::min(part, less.plan.size() - begin);
      less.plan.erase(from, from + static_cast<std::ptrdiff_t>(count));
      const RunResult result = RunPlan(less);
      if (result.violation && result.violation->law == law) {
        best = std::move(less);
        smaller = true;
      } else {
        begin += part;
      }
    }
    if (part == 1 && !smaller) break;
    part = std::max<size_t>(1, part / 2);
  }
  return best;
}

}  // namespace spoke::sim
