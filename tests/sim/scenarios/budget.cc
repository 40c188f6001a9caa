// Named runs in which all machines share a budget of bandwidth.
#include "tests/sim/scenarios/scenario_builder.h"

namespace spoke::sim {
namespace {

// The seed is not the one that found it: in that one's world the machines have no grants by then
// any more, since agents confirm their first ones sooner.
Scenario GrantsOfAStoreThatIsGone() {
  return Builder("grants-of-a-store-that-is-gone",
                 "seed 104160: machines that are not in a backup have grants", 2)
      .Seed(13)
      .Azure()
      .Budget()
      .Servers(3)
      .At(471.671, Act::kStartPods, 1, 5)
      .At(472.341, Act::kReimage, 0)
      .At(484.041, Act::kBackup)
      .At(664.689, Act::kReimage, 1)
      .At(672.142, Act::kDouble, 1, 2, 189.945)
      .At(836.089, Act::kRestore)
      .Until(absl::Minutes(16))
      .Promises("budget granted", 10)
      .Promises("restore", 1)
      .Build();
}

}  // namespace

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
                        "seed 746: who held no address was forgotten, and used its grant", 8)
                    .Seed(746)
                    .Servers(3)
                    .Azure()
                    .Budget()
                    .At(10.399, Act::kStartPods, 5, 5)
                    .At(19.980, Act::kStartPods, 6, 4)
                    .At(34.721, Act::kStopPods, 5, 1)
                    .At(36.593, Act::kStartPods, 4, 2)
                    .At(41.622, Act::kStartPods, 7, 3)
                    .At(43.400, Act::kStartPods, 1, 5)
                    .At(47.134, Act::kStartPods, 0, 3)
                    .At(49.061, Act::kStopPods, 4, 4)
                    .At(50.971, Act::kStartPods, 2, 4)
                    .At(55.395, Act::kStartPods, 3, 2)
                    .At(56.788, Act::kStartPods, 4, 4)
                    .At(58.206, Act::kStopPods, 7, 1)
                    .At(81.106, Act::kStartPods, 7, 4)
                    .At(293.803, Act::kRestartPods, 7, 2)
                    .At(363.750, Act::kRestartPods, 3, 2)
                    .At(393.026, Act::kDouble, 0, 1, 338.878)
                    .At(409.413, Act::kStartPods, 4, 4)
                    .At(410.501, Act::kCutStore, 7, 0, 30.667)
                    .Until(absl::Minutes(12))
                    .Promises("budget granted", 100)
                    .Promises("server cut off from the store", 1)
                    .Build());
  all.push_back(GrantsOfAStoreThatIsGone());
  Builder two("budget-of-machines-without-addresses",
              "seed 746: who held no address was forgotten, and used its grant", 8);
  two.Seed(1)
      .Azure()
      .Budget()
      .At(0.1, Act::kCloudRefuses, 0, 100, 300)
      .OnAll(10, Act::kStartPods, 3);
  for (const uint64_t node : {0U, 1U, 2U, 3U, 4U}) {
    two.At(62, Act::kCutNode, node, 0, 200).At(82, Act::kDouble, node, 3, 300);
  }
  two.At(107, Act::kKillServer, 0, 1).Until(absl::Minutes(10));
  all.push_back(two.Promises("two machines of one name", 5).Promises("server died", 1).Build());
  Builder ends("a-grant-ends-on-both-sides", "a node that stays silent goes down to its floor", 8);
  ends.Budget().OnAll(10, Act::kStartPods, 3).Until(absl::Minutes(24));
  for (const uint64_t node : {1U, 4U, 7U}) ends.At(100, Act::kCutNode, node, 0, 1100);
  all.push_back(ends.Promises("budget granted", 200).Promises("machine cut off", 3).Build());
}

}  // namespace spoke::sim
