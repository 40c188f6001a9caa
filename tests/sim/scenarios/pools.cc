// Named runs with more pools than one.
#include "tests/sim/scenarios/scenario_builder.h"

namespace spoke::sim {

void AddPools(std::vector<Scenario>& all) {
  all.push_back(Builder("pods-of-two-families", "either address may come late, or be lost", 5)
                    .TwoFamilies()
                    .Blocks()
                    .TeamPool()
                    .Servers(3)
                    .OnAll(10, Act::kStartPods, 6)
                    .Each({30, 17, 400}, Act::kRestartPods, 5)
                    .Each({40, 31, 400}, Act::kKillAgent, 0, 11)
                    .Each({60, 70, 400}, Act::kKillServer, 9)
                    .Each({80, 60, 400}, Act::kQuarantine, 5)
                    .Each({110, 60, 460}, Act::kLift)
                    .Each({90, 40, 420}, Act::kStopPods, 6)
                    .Each({93, 40, 420}, Act::kDrain)
                    .Each({97, 40, 420}, Act::kStartPods, 6)
                    .Each({150, 40, 480}, Act::kUndrain)
                    .Until(absl::Minutes(9))
                    .Promises("pod of two families", 60)
                    .Build());
  all.push_back(Builder("a-pool-of-a-team", "others never get what is meant for it", 5)
                    .TeamPool()
                    .OnAll(10, Act::kStartPods, 9)
                    .Each({40, 20, 400}, Act::kStopPods, 6)
                    .Each({45, 20, 400}, Act::kStartPods, 7)
                    .Each({100, 90, 400}, Act::kKillServer, 6)
                    .Until(absl::Minutes(9))
                    .Promises("pod started", 100)
                    .Build());
  all.push_back(Builder("pools-come-and-go", "what nodes have of a pool keeps it from going", 5)
                    .Servers(3)
                    .Pool("10.1.0.0/26")
                    .OnAll(30, Act::kStartPods, 9)
                    .Each({20, 40, 500}, Act::kResizePool, 3)
                    .Each({45, 40, 500}, Act::kResizePool, 1)
                    .Each({55, 90, 500}, Act::kStopPods, 8)
                    .Each({75, 90, 500}, Act::kStartPods, 9)
                    .Each({90, 70, 500}, Act::kKillServer, 5)
                    .Until(absl::Minutes(10))
                    .Promises("pool resized", 4)
                    .Promises("pool deleted", 2)
                    .Promises("objects refused", 2)
                    .Build());
}

}  // namespace spoke::sim
