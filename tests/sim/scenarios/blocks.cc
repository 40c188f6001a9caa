// Named runs in which nodes get blocks of addresses.
#include "tests/sim/scenarios/scenario_builder.h"

namespace spoke::sim {
namespace {

void AddNames(std::vector<Scenario>& all) {
  // The store gives names again that are on the NIC, and others write back what that had before.
  all.push_back(Builder("names-of-blocks-since-a-restore",
                        "seed 571009: a block's name had become another address's", 3)
                    .Seed(571009)
                    .Servers(3)
                    .Blocks()
                    .TwoFamilies()
                    .Azure()
                    .At(20.539, Act::kStartPods, 1, 4)
                    .At(274.545, Act::kStartPods, 1, 4)
                    .At(385.153, Act::kBackup)
                    .At(534.476, Act::kRestartPods, 1, 4)
                    .At(553.169, Act::kStartPods, 1, 3)
                    .At(633.178, Act::kWriteBack, 1, 0, 16.918)
                    .At(658.396, Act::kRestore, 0, 1)
                    .At(665.828, Act::kStartPods, 1, 3)
                    .Until(absl::Minutes(13))
                    .Promises("made single by others")
                    .Build());
}

}  // namespace

void AddBlocks(std::vector<Scenario>& all) {
  all.push_back(Builder("blocks-come-and-go", "a block goes only when no pod uses any of it", 4)
                    .Blocks()
                    .OnAll(10, Act::kStartPods, 10)
                    .Each({60, 20, 500}, Act::kStartPods, 9)
                    .Each({70, 20, 500}, Act::kStopPods, 9)
                    .Each({200, 90, 500}, Act::kDrain)
                    .Each({240, 90, 540}, Act::kUndrain)
                    .Each({130, 60, 500}, Act::kKillAgent, 0, 3)
                    .Until(absl::Minutes(10))
                    .Promises("drain", 3)
                    .Build());
  // They read and write in a version of Azure's API that knows single addresses only.
  all.push_back(Builder("blocks-that-others-write-back",
                        "seed 70: what fits no pool took its place on the NIC for ever", 3)
                    .Blocks()
                    .Azure()
                    .OnAll(10, Act::kStartPods, 6)
                    .Each({60, 90, 400}, Act::kWriteBack, 0, 20)
                    .Each({75, 30, 500}, Act::kRestartPods, 3)
                    .Until(absl::Minutes(10))
                    .Promises("made single by others", 3)
                    .Build());
  Builder failed("blocks-that-others-fail-to-write-back",
                 "seed 501623: our next write carried it out", 3);
  failed.Blocks().Azure().OnAll(10, Act::kStartPods, 6).Until(absl::Minutes(10));
  for (double second = 40; second < 500; second += 90) {
    failed.At(second, Act::kCloudRefuses, 0, 70, 50);
    failed.Each({second + 1, 2, second + 13}, Act::kWriteBack, 0, 1);
    failed.OnAll(second + 55, Act::kStartPods, 14);
    failed.OnAll(second + 80, Act::kStopPods, 14);
  }
  all.push_back(failed.Promises("written by others", 8).Build());
  AddNames(all);
  all.push_back(Builder("a-block-off-its-nic-is-in-use",
                        "seed 142: what else the block has counted as available", 3)
                    .Blocks()
                    .Azure()
                    .OnAll(10, Act::kStartPods, 3)
                    .Each({60, 20, 130}, Act::kTakeOff, 0)
                    .Each({240, 30, 400}, Act::kStartPods, 5)
                    .Until(absl::Minutes(12))
                    .Promises("taken off by others", 3)
                    .Build());
  all.push_back(Builder("quarantine-within-a-block", "one doubled address withholds the others", 3)
                    .Blocks()
                    .OnAll(10, Act::kStartPods, 5)
                    .Each({40, 25, 300}, Act::kQuarantine, 3)
                    .Each({45, 25, 300}, Act::kRestartPods, 3)
                    .Each({150, 70, 400}, Act::kLift)
                    .Each({60, 50, 400}, Act::kStartPods, 4)
                    .Until(absl::Minutes(8))
                    .Promises("quarantine", 6)
                    .Promises("lift", 3)
                    .Build());
}

}  // namespace spoke::sim
