// Named runs in which somebody has taken over agents.
#include "tests/sim/scenarios/scenario_builder.h"

namespace spoke::sim {

void AddLiars(std::vector<Scenario>& all) {
  Builder lie("agents-that-lie", "no other node suffers from an agent that is not ours any more",
              6);
  lie.OnAll(10, Act::kStartPods, 6);
  for (double second = 40; second < 500; second += 150) {
    lie.At(second, Act::kLie, 4, 0, 140).At(second + 20, Act::kLie, 5, 0, 100);
  }
  all.push_back(lie.Each({50, 13, 520}, Act::kRestartPods, 4)
                    .Each({60, 60, 500}, Act::kStopPods, 5)
                    .Each({75, 60, 500}, Act::kStartPods, 5)
                    .Each({90, 130, 500}, Act::kKillServer, 7)
                    .Each({110, 110, 500}, Act::kDrain)
                    .Each({150, 110, 540}, Act::kUndrain)
                    .Until(absl::Minutes(10))
                    .Promises("agent that lies", 6)
                    .Build());

  // Who knows more than an old store has may also say more than is so.
  Builder restored("agents-that-lie-after-a-restore",
                   "what nodes show is gathered, whoever says it", 6);
  restored.Servers(3).OnAll(10, Act::kStartPods, 5);
  for (double second = 60; second < 600; second += 200) {
    restored.At(second, Act::kBackup, 0, 1).At(second + 5, Act::kStartPods, 1, 5);
    restored.At(second + 30, Act::kLie, 5, 0, 150).At(second + 60, Act::kRestore);
    restored.At(second + 120, Act::kStopPods, 1, 5).At(second + 130, Act::kStartPods, 0, 3);
  }
  all.push_back(restored.Until(absl::Minutes(12))
                    .Promises("agent that lies", 3)
                    .Promises("restore", 3)
                    .Build());
}

}  // namespace spoke::sim
