// Named runs in which operators and the cloud want something of single nodes.
#include "tests/sim/scenarios/scenario_builder.h"

namespace spoke::sim {

void AddOperators(std::vector<Scenario>& all) {
  // Whoever is to be deleted gets nothing more; whoever is not is served again.
  Builder announced("deletions-announced", "issue 6: an announcement that is taken back", 5);
  announced.OnAll(10, Act::kStartPods, 3).Each({60, 45, 560}, Act::kAnnounce, 2, 30);
  announced.Each({70, 95, 400}, Act::kAnnounce, 1, 50).Each({65, 20, 400}, Act::kStartPods, 2);
  announced.OnAll(595, Act::kStartPods, 16);
  announced.Each({90, 70, 500}, Act::kKillServer, 5).Each({100, 60, 500}, Act::kKillAgent, 9);
  announced.Until(absl::Minutes(10)).Promises("deletion announced", 12);
  all.push_back(announced.Promises("machine scaled in", 3).Build());

  Builder released("operators-want-it-so", "forced releases beside late DELs", 4);
  released.OnAll(10, Act::kStartPods, 6).At(20, Act::kLoseDels, 0, 60, 560);
  released.Each({40, 7, 560}, Act::kRestartPods, 2).Each({41, 6, 580}, Act::kRelease, 1);
  released.Each({50, 50, 560}, Act::kFreeze, 0, 40).Each({60, 30, 560}, Act::kRetry);
  released.Each({64, 15, 560}, Act::kRelease, 2).Each({90, 80, 560}, Act::kStopPods, 4);
  released.Each({100, 80, 560}, Act::kStartPods, 4).Each({120, 90, 560}, Act::kNetworkSlow, 50, 20);
  released.Until(absl::Minutes(11)).Promises("release by force", 15);
  all.push_back(released.Promises("thaw", 6).Promises("retry", 8).Build());
}

}  // namespace spoke::sim
