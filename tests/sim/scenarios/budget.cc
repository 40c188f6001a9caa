// Named runs in which all machines share a budget of bandwidth.
#include "tests/sim/scenarios/scenario_builder.h"

namespace spoke::sim {

void AddBudgets(std::vector<Scenario>& all) {
  Builder die("budgets-while-leaders-die", "what a server before has granted is unknown", 8);
  die.Servers(3).Budget().OnAll(10, Act::kStartPods, 3).Until(absl::Minutes(14));
  die.Each({60, 45, 600}, Act::kKillServer, 3).Each({75, 110, 700}, Act::kKillAgents, 4);
  die.Each({90, 130, 700}, Act::kStandStill, 0, 12);
  all.push_back(die.Promises("budget granted", 200).Promises("server died", 8).Build());
  Builder cut("budgets-of-nodes-cut-off", "a silent node uses what it was granted", 8);
  cut.Servers(3).Budget().OnAll(10, Act::kStartPods, 3).Until(absl::Minutes(24));
  for (const double second : {130, 480, 830}) {
    for (const uint64_t node : {0U, 1U, 2U, 3U}) cut.At(second, Act::kCutNode, node, 0, 240);
    cut.At(second + 3, Act::kKillServer, 0, 2).At(second + 290, Act::kReplace, 4);
  }
  all.push_back(cut.Promises("budget granted", 200).Promises("machine cut off", 8).Build());
  // As the seed had it, but for what does not matter.
  all.push_back(Builder("budget-of-two-machines-of-one-name",
                        "seed 409: who held no address was forgotten, and used its grant", 8)
                    .Seed(409)
                    .Servers(3)
                    .Azure()
                    .Budget()
                    .At(42.046, Act::kStartPods, 0, 4)
                    .At(44.473, Act::kStartPods, 5, 5)
                    .At(59.080, Act::kStartPods, 4, 2)
                    .At(86.424, Act::kStartPods, 5, 1)
                    .At(100.402, Act::kRestartPods, 0, 3)
                    .At(179.970, Act::kStartPods, 5, 6)
                    .At(351.854, Act::kRestartPods, 5, 4)
                    .At(354.997, Act::kStopPods, 0, 5)
                    .At(401.580355, Act::kDouble, 5, 1, 303)
                    .At(404.910, Act::kRebootServer, 1)
                    .At(438.827, Act::kKillServer, 1, 28)
                    .Until(absl::Minutes(12))
                    .Promises("budget granted", 100)
                    .Promises("server died", 2)
                    .Build());
  Builder ends("a-grant-ends-on-both-sides", "a node that stays silent goes down to its floor", 8);
  ends.Budget().OnAll(10, Act::kStartPods, 3).Until(absl::Minutes(24));
  for (const uint64_t node : {1U, 4U, 7U}) ends.At(100, Act::kCutNode, node, 0, 1100);
  all.push_back(ends.Promises("budget granted", 200).Promises("machine cut off", 3).Build());
}

}  // namespace spoke::sim
