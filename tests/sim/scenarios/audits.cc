// Named runs in which an operator has audits repair what differs.
#include "tests/sim/scenarios/scenario_builder.h"

namespace spoke::sim {

void AddAudits(std::vector<Scenario>& all) {
  Builder audits("audits-that-repair", "what is repaired may have changed since it was compared",
                 5);
  audits.Servers(3).OnAll(10, Act::kStartPods, 6);
  audits.Each({60, 23, 700}, Act::kAudit).Each({40, 37, 640}, Act::kRestartPods, 4);
  audits.Each({50, 110, 640}, Act::kTakeOff, 2).Each({90, 97, 640}, Act::kWriteBack, 0, 100);
  audits.Each({75, 130, 640}, Act::kStaleListings, 0, 90).Each({100, 85, 640}, Act::kReboot);
  audits.Each({120, 150, 640}, Act::kCutNode, 0, 140).Each({130, 170, 640}, Act::kKillServer, 11);
  all.push_back(audits.Until(absl::Minutes(12))
                    .Promises("audit", 10)
                    .Promises("audit that repairs something", 2)
                    .Build());
}

}  // namespace spoke::sim
