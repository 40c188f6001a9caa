// Named runs in which a store is behind what nodes had been told or have done, or memory ahead of
// it.
#include "tests/sim/scenarios/scenario_builder.h"

namespace spoke::sim {

namespace {

void AddUnseenRestores(std::vector<Scenario>& all) {
  // What one of them was told since the backup nobody else knows, and it cannot say so in time.
  Builder cut("cut-off-since-a-restore", "seed 509549: a silent node's NIC was written", 4);
  cut.OnAll(10, Act::kStartPods, 4);
  for (double second = 60; second < 500; second += 220) {
    cut.At(second, Act::kBackup).At(second + 5, Act::kStartPods, 2, 9);
    cut.At(second + 50, Act::kCutNode, 2, 0, 150).At(second + 80, Act::kRestore, 0, 1);
  }
  all.push_back(cut.Until(absl::Minutes(11)).Promises("restore", 2).Build());

  // For longer than nodes have where nobody knows whether a store is an old one. A backup says so.
  Builder away("cut-off-for-long-since-a-restore",
               "seed 601431: what only a silent node was told went to others", 3);
  away.Servers(3).OnAll(10, Act::kStartPods, 4);
  for (double second = 60; second < 700; second += 300) {
    away.At(second, Act::kBackup, 0, 1).At(second + 5, Act::kStartPods, 1, 9);
    away.At(second + 50, Act::kCutNode, 1, 0, 170).At(second + 60, Act::kRestore);
    away.At(second + 100, Act::kStartPods, 0, 9).At(second + 125, Act::kStartPods, 2, 9);
    away.At(second + 280, Act::kStopPods, 0, 9).At(second + 280, Act::kStopPods, 2, 9);
  }
  all.push_back(away.Until(absl::Minutes(13)).Promises("restore", 3).Build());

  // Nobody else was told anything since the backup, and it remembers nothing.
  Builder forgot("reimaged-at-a-restore",
                 "seeds 402783, 563120: a machine that knows nothing vouched for an old store", 3);
  forgot.Servers(3).OnAll(10, Act::kStartPods, 3);
  for (double second = 60; second < 700; second += 220) {
    forgot.At(second, Act::kBackup).At(second + 5, Act::kStartPods, 1, 12);
    forgot.At(second + 99, Act::kReimage, 1).At(second + 100, Act::kRestore, 0, 1);
  }
  all.push_back(forgot.Until(absl::Minutes(12))
                    .Promises("restore", 3)
                    .Promises("machine reimaged", 3)
                    .Build());

  // It runs on, and only it knows what it was told since the backup.
  Builder replaced("replaced-and-cut-off-since-a-restore",
                   "seeds 560760, 300095: a machine whose name another has was not awaited", 4);
  replaced.Servers(3).OnAll(10, Act::kStartPods, 4);
  for (double second = 60; second < 700; second += 320) {
    replaced.At(second, Act::kBackup).At(second + 5, Act::kStartPods, 2, 12);
    replaced.At(second + 60, Act::kDouble, 2, 3, 220);
    replaced.At(second + 100, Act::kRestore).At(second + 104.5, Act::kCutNode, 2, 0, 120);
    replaced.At(second + 260, Act::kStopPods, 2, 12);
    for (const uint64_t node : {0U, 1U}) {
      replaced.At(second + 130, Act::kStartPods, node, 12)
          .At(second + 260, Act::kStopPods, node, 12);
    }
  }
  all.push_back(replaced.Until(absl::Minutes(13)).Promises("restore", 2).Build());
}

void AddScaledIn(std::vector<Scenario>& all) {
  // Nobody has its name, and the cloud lists it no more: nobody has to confirm that.
  Builder gone("scaled-in-at-a-restore",
               "a recovery waited for a machine that was deleted, until an operator came", 5);
  gone.OnAll(10, Act::kStartPods, 4).At(60, Act::kBackup, 0, 1).At(80, Act::kScaleIn, 1, 0, 500);
  gone.At(120, Act::kRestore).At(150, Act::kStartPods, 0, 12).At(480, Act::kConfirm, 0, 1);
  all.push_back(gone.Until(absl::Minutes(11))
                    .Promises("machine scaled in")
                    .Promises("recovery over without an operator")
                    .Build());
}

void AddSpares(std::vector<Scenario>& all) {
  // No pod has them when their node speaks, and one gets them before it can speak again.
  Builder spares("spare-since-a-restore", "what a node has in store for pods is its own as well",
                 4);
  spares.Servers(3).OnAll(10, Act::kStartPods, 4);
  for (int round = 0; round < 4; ++round) {
    const double second = 60 + 170 * round;
    spares.At(second, Act::kBackup, 0, 1).At(second + 5, Act::kStartPods, 1, 9);
    spares.At(second + 50, Act::kRestore).At(second + 55 + 3 * round, Act::kCutNode, 1, 0, 50);
    for (double at = second + 56; at < second + 100; at += 4) spares.At(at, Act::kStartPods, 1, 1);
    spares.At(second + 120, Act::kStopPods, 1, 20);
  }
  all.push_back(spares.Until(absl::Minutes(13)).Promises("restore", 4).Build());
}

void AddUnknownPool(std::vector<Scenario>& all) {
  // The store has neither the pool nor what pods have of it.
  Builder pool("pool-made-since-a-restore",
               "seed 900702: what pods used of a pool that the store had lost went off a NIC", 5);
  pool.Pool("10.1.0.0/26").OnAll(10, Act::kStartPods, 4).At(60, Act::kBackup, 0, 1);
  for (double second = 62; second < 90; second += 7) pool.At(second, Act::kResizePool, 5, 3);
  pool.OnAll(100, Act::kStartPods, 9).At(150, Act::kRestore).OnAll(230, Act::kStopPods, 3);
  // The operator makes it again, while pods use what was of it.
  for (double second = 320; second < 350; second += 7) pool.At(second, Act::kResizePool, 5, 3);
  pool.OnAll(360, Act::kStartPods, 9);
  all.push_back(pool.Until(absl::Minutes(10)).Promises("restore").Promises("pool resized").Build());
}

void AddUnreported(std::vector<Scenario>& all) {
  // Pods use what is withheld meanwhile, and nobody reports it before the machine has a new disk.
  Builder lifted("lifted-after-a-new-disk", "seed 807450: it went to a pod without a rest", 2);
  lifted.OnAll(10, Act::kStartPods, 3).Until(absl::Minutes(8));
  for (double second = 60; second < 400; second += 110) {
    lifted.At(second, Act::kCutNode, 0, 0, 45).At(second + 5, Act::kStartPods, 0, 8);
    for (double at = second + 10; at < second + 30; at += 2) {
      lifted.At(at, Act::kQuarantine, 0, static_cast<int64_t>(at));
    }
    lifted.At(second + 40, Act::kReimage, 0).At(second + 62, Act::kLift);
    lifted.At(second + 95, Act::kStopPods, 0, 8);
  }
  all.push_back(lifted.Promises("machine reimaged", 3).Promises("lift", 3).Build());
}

void AddUnstored(std::vector<Scenario>& all) {
  Builder never("policies-that-are-never-stored",
                "seed 201435: agents had a policy that the store never had", 6);
  never.OnAll(10, Act::kStartPods, 4).Until(absl::Minutes(9));
  for (double second = 60; second < 480; second += 40) {
    never.At(second, Act::kCutStore, 0, 0, 2);
    never.At(second + 1, Act::kApplyPolicy, static_cast<uint64_t>(second), 35);
  }
  all.push_back(never.Promises("server cut off from the store", 8).Build());
}

}  // namespace

void AddRecoveries(std::vector<Scenario>& all) {
  AddUnseenRestores(all);
  AddScaledIn(all);
  AddSpares(all);
  AddUnknownPool(all);
  // Their pods use what a server gave them that is gone with its store, until they boot.
  Builder unknown("unknown-since-a-restore", "seed 61534: what was free by an old store was not",
                  6);
  unknown.Azure().Servers(3).OnAll(10, Act::kStartPods, 4).At(60, Act::kBackup);
  for (const uint64_t node : {0U, 1U, 2U}) {
    const auto after = static_cast<double>(node);
    unknown.At(70 + after, Act::kReplace, node);
    unknown.At(160 + after, Act::kCutNode, node, 0, 240 - after);
    unknown.At(392 + after, Act::kReboot, node);
  }
  all.push_back(unknown.At(200, Act::kRestore)
                    .Each({220, 20, 340}, Act::kConfirm)
                    .Until(absl::Minutes(10))
                    .Promises("machine replaced", 3)
                    .Promises("machine booted", 3)
                    .Build());

  // What pods had until their nodes booted goes to others of another server.
  Builder rests("rests-though-the-server-dies", "seed 61534: only the process knew that it rests",
                6);
  rests.OnAll(10, Act::kStartPods, 3).At(40, Act::kBackup).OnAll(60, Act::kStartPods, 9);
  rests.At(120, Act::kRestore);
  for (const uint64_t node : {0U, 1U, 2U}) rests.At(122.5, Act::kReboot, node);
  for (double second = 140; second < 150; second += 5) rests.At(second, Act::kKillServer, 0, 3);
  for (const uint64_t node : {3U, 4U, 5U}) rests.At(143, Act::kStartPods, node, 20);
  all.push_back(
      rests.Until(absl::Minutes(6)).Promises("server died", 2).Promises("restore", 1).Build());

  // One whose name another has speaks last, and is told of what it has given up since the backup.
  Builder two("names-two-have-since-a-restore",
              "seed 109277: an old store's list was told to one that had not spoken", 5);
  two.OnAll(10, Act::kStartPods, 8).At(100, Act::kBackup).OnAll(110, Act::kStopPods, 6);
  for (const uint64_t node : {0U, 1U, 2U}) {
    two.At(680, Act::kDouble, node, 2, 200).At(690, Act::kCutNode, node, 0, 40);
    for (double second = 730; second < 745; second += 0.5) {
      two.At(second, Act::kStartPods, node, 2);
    }
  }
  all.push_back(two.At(700, Act::kRestore)
                    .Each({716, 2, 729}, Act::kConfirm)
                    .Until(absl::Minutes(14))
                    .Promises("two machines of one name", 3)
                    .Promises("restore", 1)
                    .Build());
  AddUnreported(all);
  AddUnstored(all);
  all.push_back(Builder("names-of-a-nic-since-a-restore",
                        "seed 70266: an old store gave names again that the NIC had", 2)
                    .Seed(70266)
                    .Azure()
                    .TwoFamilies()
                    .Blocks()
                    .Servers(3)
                    .At(317.918, Act::kTakeOff, 1, 7)
                    .At(501.141, Act::kStartPods, 1, 5)
                    .At(1246.900, Act::kStopPods, 1, 3)
                    .At(1251.208, Act::kBackup)
                    .At(1423.340, Act::kStartPods, 1, 6)
                    .At(1436.960, Act::kRestore)
                    .Until(absl::Minutes(30))
                    .Promises("restore", 1)
                    .Build());
}

}  // namespace spoke::sim
