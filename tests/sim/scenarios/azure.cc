// Named runs on Azure, with the servers' real client of it.
#include "tests/sim/scenarios/scenario_builder.h"

namespace spoke::sim {
namespace {

// What others do to NICs, and what Azure does meanwhile with what they took.
void AddAzureWriters(std::vector<Scenario>& all) {
  Builder failed("removals-that-fail", "seed 93: our next write carried it out", 3);
  failed.Azure().OnAll(10, Act::kStartPods, 4).Until(absl::Minutes(10));
  for (double second = 40; second < 500; second += 90) {
    failed.At(second, Act::kCloudRefuses, 0, 70, 50);
    failed.Each({second + 1, 2, second + 13}, Act::kTakeOff, 1);
    failed.OnAll(second + 55, Act::kStartPods, 3);
    failed.OnAll(second + 80, Act::kStopPods, 1);
  }
  all.push_back(failed.Promises("written by others", 8).Build());

  Builder given("given-to-another-node-meanwhile", "seed 138: a node waits for what is in use", 3);
  given.Azure().At(10, Act::kStartPods, 0, 12).Until(absl::Minutes(14));
  for (int i = 0; i < 8; ++i) given.At(60 + 12 * i, Act::kTakeOff, 0, i);
  all.push_back(
      given.Each({200, 20, 500}, Act::kStartPods, 5).Promises("taken off by others", 5).Build());

  all.push_back(
      Builder("named-twice-on-one-nic", "seed 33: what is taken off has another's name", 3)
          .Azure()
          .OnAll(5, Act::kStartPods, 3)
          .Each({20, 9, 300}, Act::kTakeOff, 1)
          .Each({22, 13, 300}, Act::kStartPods, 3)
          .Each({60, 30, 300}, Act::kWriteBack, 0, 40)
          .Each({150, 50, 330}, Act::kDrain)
          .Each({180, 50, 360}, Act::kUndrain)
          .Until(absl::Minutes(8))
          .Promises("taken off by others", 10)
          .Build());
  all.push_back(Builder("what-others-write-beside", "a load balancer adds a pool while we write", 3)
                    .Azure()
                    .OnAll(10, Act::kStartPods, 4)
                    .Each({30, 6, 300}, Act::kStartPods, 5)
                    .Each({33, 6, 300}, Act::kStopPods, 5)
                    .Promises("Azure answered a write with 412", 1)
                    .Build());
  all.push_back(Builder("two-families-on-azure", "either address may come late, or be lost", 4)
                    .Azure()
                    .TwoFamilies()
                    .Blocks()
                    .OnAll(10, Act::kStartPods, 6)
                    .Each({40, 25, 500}, Act::kTakeOff, 1)
                    .Each({50, 40, 500}, Act::kRestartPods, 4)
                    .Each({60, 55, 500}, Act::kWriteBack, 0, 30)
                    .Each({75, 90, 500}, Act::kKillServer, 6)
                    .Each({90, 60, 500}, Act::kStopPods, 5)
                    .Each({100, 60, 500}, Act::kStartPods, 6)
                    .Until(absl::Minutes(12))
                    .Promises("taken off by others", 5)
                    .Promises("pod of two families", 40)
                    .Build());
  all.push_back(Builder("reimaged-on-azure", "seed 23: pods got what the NIC has no more", 4)
                    .Azure()
                    .OnAll(10, Act::kStartPods, 6)
                    .Each({60, 70, 500}, Act::kReimage)
                    .Each({65, 40, 500}, Act::kRestartPods, 3)
                    .Until(absl::Minutes(12))
                    .Promises("machine reimaged", 6)
                    .Build());
}

// What others put on a NIC is seen in an old picture of it, after it has been taken off again.
void AddAzureOldPictures(std::vector<Scenario>& all) {
  all.push_back(Builder("put-there-by-others-and-gone", "seed 941163: an old picture of a NIC", 3)
                    .Azure()
                    .Seed(941163)
                    .At(10.203, Act::kStartPods, 0, 1)
                    .At(16.275, Act::kReplace, 2)
                    .At(21.428, Act::kStartPods, 1, 1)
                    .At(45.958, Act::kStartPods, 2, 5)
                    .At(78.229, Act::kWriteBack, 0, 0, 116.103)
                    .At(105.518, Act::kKillServer, 0, 52)
                    .At(116.511, Act::kStopPods, 1, 1)
                    .At(159.959, Act::kWriteBack, 1, 0, 135.683)
                    .At(163.583, Act::kStartPods, 0, 3)
                    .At(185.388, Act::kStopPods, 2, 2)
                    .At(294.746, Act::kDrain, 1)
                    .At(344.393, Act::kReimage, 1)
                    .At(370.382, Act::kStartPods, 1, 1)
                    .Until(absl::Minutes(8))
                    .Promises("taken off by others", 4)
                    .Build());
}

// Servers that die, are deposed or stand still while Azure carries out what they sent.
void AddAzureLeaders(std::vector<Scenario>& all) {
  all.push_back(Builder("azure-while-leaders-die", "issue 12: a write the old leader left", 6)
                    .Azure()
                    .Servers(3)
                    .OnAll(10, Act::kStartPods, 4)
                    .Each({20, 9, 400}, Act::kKillServer, 7)
                    .Each({25, 11, 400}, Act::kRestartPods, 4)
                    .Each({100, 30, 400}, Act::kStartPods, 3)
                    .Until(absl::Minutes(8))
                    .Promises("server died", 20)
                    .Build());
  Builder still("azure-while-leaders-stand-still", "Kleppmann 2016: a pause outlasts the lease", 8);
  still.Azure().Servers(3).OnAll(10, Act::kStartPods, 4).Until(absl::Minutes(9));
  for (const double second : {40, 110, 180, 260, 330}) {
    still.OnAll(second, Act::kStartPods, 3);
    still.At(second + 0.5, Act::kStandStill, 0, 0, 14);
    still.OnAll(second + 20, Act::kStopPods, 3);
  }
  all.push_back(still.Promises("server stood still", 4).Build());
}

void AddAzureAnswers(std::vector<Scenario>& all) {
  all.push_back(Builder("azure-answers-are-lost", "nobody knows what became of a write", 4)
                    .Azure()
                    .At(8, Act::kCloudForgets, 0, 40, 350)
                    .At(200, Act::kStaleListings, 0, 0, 200)
                    .OnAll(10, Act::kStartPods, 5)
                    .Each({40, 15, 400}, Act::kRestartPods, 3)
                    .Each({60, 40, 400}, Act::kStartPods, 4)
                    .Each({80, 40, 400}, Act::kStopPods, 4)
                    .Until(absl::Minutes(9))
                    .Promises("cloud answer lost", 3)
                    .Build());
  // The store that is restored does not know what has come and gone since.
  Builder old("old-pictures-after-a-restore", "seed 726: what had left the NIC came back", 8);
  old.Azure().At(20, Act::kBackup).OnAll(30, Act::kStartPods, 8).OnAll(60, Act::kStopPods, 8);
  old.At(100, Act::kStaleListings, 0, 0, 400).At(221, Act::kRestore);
  for (const uint64_t node : {0U, 2U, 4U, 6U}) {
    old.At(205, Act::kDrain, node).At(220, Act::kUndrain, node);
  }
  old.OnAll(229, Act::kStartPods, 12);
  all.push_back(old.Until(absl::Minutes(9)).Promises("restore", 1).Build());
  // The operator lifts what was put away before the boot by a server that is no more.
  Builder lifted("lifted-after-a-boot-by-another-server", "seed 68: the clock of another server",
                 3);
  lifted.Servers(3).OnAll(10, Act::kStartPods, 5).Until(absl::Minutes(10));
  for (int i = 0; i < 9; ++i) {
    const double second = 60 + 60 * i;
    lifted.At(second, Act::kQuarantine, 0, 0).At(second + 10, Act::kReboot, 0);
    lifted.At(second + 15.5, Act::kKillServer, 0, 1).At(second + 32, Act::kLift);
    lifted.At(second + 31, Act::kStartPods, 0, 14).At(second + 50, Act::kStopPods, 0, 14);
  }
  lifted.Settling(absl::Minutes(10));
  all.push_back(lifted.Promises("lift", 5).Promises("machine booted", 8).Build());
}

}  // namespace

void AddAzure(std::vector<Scenario>& all) {
  AddAzureWriters(all);
  AddAzureOldPictures(all);
  AddAzureLeaders(all);
  AddAzureAnswers(all);
}

}  // namespace spoke::sim
