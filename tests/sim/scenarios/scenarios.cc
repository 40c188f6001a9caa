#include "tests/sim/scenarios/scenarios.h"

#include "fmt/core.h"
#include "tests/sim/scenarios/scenario_builder.h"

namespace spoke::sim {
namespace {

void AddPods(std::vector<Scenario>& all) {
  all.push_back(Builder("late-and-doubled-dels", "ACN#885, ACN#4829: a DEL frees the next pod", 3)
                    .OnAll(10, Act::kStartPods, 6)
                    .At(20, Act::kLoseDels, 0, 0, 200)
                    .Each({30, 10, 220}, Act::kRestartPods, 3)
                    .Promises("late DEL", 5)
                    .Promises("GC")
                    .Build());
  all.push_back(Builder("sandbox-crash-loop", "ACN#4497: one address leaks with each crash", 2)
                    .Pool("10.1.0.0/27")
                    .OnAll(10, Act::kStartPods, 4)
                    .At(11, Act::kLoseDels, 0, 0, 240)
                    .Each({20, 6, 250}, Act::kRestartPods, 2)
                    .Promises("DEL lost", 3)
                    .Promises("GC", 2)
                    .Build());
  all.push_back(Builder("plugin-killed-while-it-waits", "ACN#218: a failed ADD leaks an address", 2)
                    .At(5, Act::kLoseDels, 0, 0, 250)
                    .At(30, Act::kCloudSlow, 0, 0, 220)
                    .OnAll(10, Act::kStartPods, 6)
                    .Each({40, 20, 250}, Act::kStartPods, 9)
                    .Each({58, 20, 250}, Act::kStopPods, 9)
                    .Promises("plugin killed", 2)
                    .Build());
  all.push_back(
      Builder("agents-die-in-the-middle", "ACN#1259, Calico#13858: doubled after a restart", 3)
          .OnAll(10, Act::kStartPods, 6)
          .Each({12, 7, 240}, Act::kKillAgent, 3)
          .Each({14, 7, 240}, Act::kKillAgent, 9)
          .Each({15, 9, 240}, Act::kRestartPods, 4)
          .Promises("agent died", 15)
          .Promises("plugin lost its agent", 1)
          .Build());
  all.push_back(Builder("agents-die-and-dels-are-lost", "Calico#13858: half of an ADD is left", 3)
                    .OnAll(10, Act::kStartPods, 6)
                    .At(11, Act::kLoseDels, 0, 0, 480)
                    .Each({12, 2.5, 480}, Act::kKillAgent, 3)
                    .Each({13.2, 3.7, 480}, Act::kKillAgent, 6)
                    .Each({13, 3, 480}, Act::kRestartPods, 4)
                    .Until(absl::Minutes(12))
                    .Promises("agent died", 20)
                    .Promises("DEL lost", 5)
                    .Build());
  all.push_back(Builder("tmpfs-is-full", "ACN#2817: the store of the agent cannot be written", 2)
                    .OnAll(10, Act::kStartPods, 5)
                    .At(30, Act::kJournalFull, 0, 0, 60)
                    .At(130, Act::kKernelRefuses, 0, 0, 60)
                    .Each({31, 6, 200}, Act::kRestartPods, 2)
                    .Promises("ADD failed", 1)
                    .Promises("DEL failed", 1)
                    .Build());
  all.push_back(Builder("pods-faster-than-addresses", "ACN#2999, Whereabouts#313: bursts", 4)
                    .OnAll(10, Act::kStartPods, 20)
                    .OnAll(90, Act::kStopPods, 20)
                    .OnAll(130, Act::kStartPods, 25)
                    .Promises("pod started", 150)
                    .Build());
}

void AddMachines(std::vector<Scenario>& all) {
  all.push_back(Builder("reboot-while-in-use", "ACN PR#2022: what a reboot freed is handed out", 3)
                    .OnAll(10, Act::kStartPods, 6)
                    .At(60, Act::kReboot, 0)
                    .At(61, Act::kReboot, 1)
                    .At(90, Act::kReboot, 0)
                    .Each({120, 10, 200}, Act::kReboot)
                    .Each({62, 10, 240}, Act::kRestartPods, 2)
                    .Promises("machine booted", 8)
                    .Build());
  all.push_back(Builder("booted-before-it-could-say", "seeds 33, 602, 714, 738: not reported", 3)
                    .OnAll(10, Act::kStartPods, 2)
                    .At(60, Act::kStartPods, 0, 4)
                    .At(60.08, Act::kReboot, 0)
                    .At(120, Act::kStartPods, 1, 4)
                    .At(120.06, Act::kReboot, 1)
                    .At(180, Act::kStartPods, 2, 4)
                    .At(180.04, Act::kReboot, 2)
                    .Promises("machine booted", 3)
                    .Build());
  all.push_back(Builder("replaced-under-its-name", "ACN#4210: the stale state of the VM before", 3)
                    .OnAll(10, Act::kStartPods, 6)
                    .At(60, Act::kReplace, 0)
                    .At(120, Act::kReplace, 1)
                    .At(125, Act::kStaleListings, 0, 0, 120)
                    .At(150, Act::kReplace, 2)
                    .At(155, Act::kReplace, 0)
                    .Until(absl::Minutes(8))
                    .Promises("machine replaced", 4)
                    .Promises("stale listing", 1)
                    .Build());
  all.push_back(
      Builder("stale-listing", "AWS#3887, AWS#3019: an old picture frees what is in use", 2)
          .OnAll(10, Act::kStartPods, 3)
          .At(40, Act::kReplace, 1)
          .At(45, Act::kStaleListings, 0, 0, 200)
          .Promises("stale listing", 2)
          .Build());
  all.push_back(Builder("machines-cut-off", "Calico#2713: silent nodes keep what they have", 3)
                    .OnAll(10, Act::kStartPods, 5)
                    .Each({40, 45, 300}, Act::kCutNode, 0, 70)
                    .Each({45, 13, 300}, Act::kRestartPods, 3)
                    .Promises("machine cut off", 4)
                    .Build());
}

void AddForgotten(std::vector<Scenario>& all) {
  // The second one with a server that dies in between.
  for (const bool restarts : {false, true}) {
    Builder builder(restarts ? "forgotten-and-restarted" : "forgotten-with-its-pods",
                    "ACN#4210: freed with the VM, used at once", 3);
    builder.Pool("10.1.0.0/27")
        .At(10, Act::kStartPods, 0, 12)
        .At(12, Act::kStartPods, 1, 4)
        .At(12, Act::kStartPods, 2, 4)
        .At(50, Act::kStartPods, 1, 9)
        .At(50, Act::kStartPods, 2, 9)
        .At(59, Act::kStopPods, 0, 10)
        .At(60, Act::kReplace, 0)
        .At(60.5, Act::kForget, 0)
        .At(250, Act::kStopPods, 1, 11)
        .At(250, Act::kStopPods, 2, 11)
        .At(300, Act::kDrain, 1)
        .At(420, Act::kUndrain, 1)
        .Until(absl::Minutes(8))
        .Promises("machine replaced")
        .Promises("forget");
    if (restarts) builder.At(61, Act::kKillServer, 0, 1).Promises("server died");
    all.push_back(builder.Build());
  }
  all.push_back(Builder("quarantined-in-use", "an address in quarantine went to the next pod", 3)
                    .At(10, Act::kStartPods, 0, 6)
                    .At(40, Act::kQuarantine, 0)
                    .At(41, Act::kQuarantine, 0, 2)
                    .At(45, Act::kStopPods, 0, 6)
                    .At(50, Act::kStartPods, 0, 6)
                    .At(76, Act::kLift)
                    .At(80, Act::kQuarantine, 0, 1)
                    .At(81, Act::kKillServer, 0, 3)
                    .At(90, Act::kStopPods, 0, 6)
                    .At(110, Act::kStartPods, 0, 6)
                    .At(121, Act::kKillAgent, 0, 5)
                    .At(140, Act::kLift)
                    .Until(absl::Minutes(5))
                    .Promises("quarantine", 2)
                    .Promises("lift")
                    .Build());
  all.push_back(Builder("forgotten-and-wanted", "whereabouts#313: the last address of a pool", 3)
                    .Pool("10.1.0.0/26")
                    .At(10, Act::kStartPods, 0, 12)
                    .At(59, Act::kStopPods, 0, 10)
                    .At(60, Act::kReplace, 0)
                    .At(60.5, Act::kForget, 0)
                    .At(61, Act::kStartPods, 1, 30)
                    .At(61, Act::kStartPods, 2, 30)
                    .At(250, Act::kStopPods, 1, 28)
                    .At(250, Act::kStopPods, 2, 28)
                    .At(300, Act::kDrain, 1)
                    .At(420, Act::kUndrain, 1)
                    .Until(absl::Minutes(8))
                    .Promises("machine replaced")
                    .Promises("forget")
                    .Build());
  Builder listed("listed-as-it-was-before", "AWS#3887: an old listing lacks the new VM", 3);
  listed.OnAll(10, Act::kStartPods, 2).At(50, Act::kStaleListings, 0, 0, 250);
  for (const double second : {57, 62, 67}) listed.At(second, Act::kReplace, 1);
  all.push_back(listed.Each({130, 15, 300}, Act::kRestartPods, 1)
                    .Until(absl::Minutes(8))
                    .Promises("machine replaced", 3)
                    .Promises("stale listing", 2)
                    .Build());
}

void AddReleases(std::vector<Scenario>& all) {
  all.push_back(Builder("wanted-again-while-it-goes", "Cilium#13412: used after it is given up", 3)
                    .OnAll(10, Act::kStartPods, 12)
                    .OnAll(30, Act::kStopPods, 10)
                    .At(70, Act::kCloudSlow, 0, 0, 250)
                    .At(70, Act::kNetworkSlow, 0, 0, 150)
                    .At(75, Act::kDrain, 0)
                    .Each({75, 0.2, 90}, Act::kStartPods, 1)
                    .At(80, Act::kStartPods, 0, 6)
                    .At(130, Act::kUndrain, 0)
                    .At(140, Act::kDrain, 1)
                    .At(142, Act::kStartPods, 1, 8)
                    .At(180, Act::kUndrain, 1)
                    .Until(absl::Minutes(8))
                    .Promises("drain", 2)
                    .Promises("asked to give back", 1)
                    .Build());
  all.push_back(Builder("a-job-ends", "AWS#2730: everything is given back at once", 14)
                    .OnAll(10, Act::kStartPods, 24)
                    .OnAll(100, Act::kStopPods, 24)
                    .Until(absl::Minutes(9))
                    .Promises("asked to give back", 8)
                    .Build());
  all.push_back(Builder("up-right-after-down", "ACN PR#962: the list of releases is lost", 3)
                    .OnAll(10, Act::kStartPods, 16)
                    .OnAll(40, Act::kStopPods, 15)
                    .Each({225, 3, 300}, Act::kStartPods, 5)
                    .Each({226, 3, 300}, Act::kStopPods, 4)
                    .Until(absl::Minutes(7))
                    .Promises("asked to give back", 2)
                    .Build());
  all.push_back(
      Builder("agent-dies-giving-back", "Cilium#13412, Cilium#39981: the handshake's hole", 3)
          .OnAll(10, Act::kStartPods, 16)
          .OnAll(40, Act::kStopPods, 14)
          .Each({200, 2, 300}, Act::kKillAgent, 2)
          .Each({201, 5, 300}, Act::kStartPods, 3)
          .Each({202, 5, 300}, Act::kStopPods, 3)
          .Until(absl::Minutes(7))
          .Promises("agent died", 10)
          .Promises("asked to give back", 2)
          .Build());
  all.push_back(Builder("drained-in-use", "Whereabouts#389: references are left after a drain", 3)
                    .OnAll(10, Act::kStartPods, 5)
                    .At(60, Act::kDrain, 0)
                    .Each({61, 4, 140}, Act::kRestartPods, 2)
                    .At(100, Act::kUndrain, 0)
                    .At(110, Act::kDrain, 1)
                    .At(111, Act::kKillServer, 0, 3)
                    .At(180, Act::kUndrain, 1)
                    .Promises("drain", 2)
                    .Promises("asked to give back", 1)
                    .Build());
  all.push_back(Builder("a-pool-that-is-small", "terway#1030, ACN#1605: hoarding, and none left", 3)
                    .Pool("10.1.0.0/27")
                    .OnAll(10, Act::kStartPods, 4)
                    .Each({60, 30, 300}, Act::kReplace)
                    .Each({50, 10, 300}, Act::kRestartPods, 2)
                    .At(120, Act::kReserve, 0, 4)
                    .Until(absl::Minutes(8))
                    .Promises("machine replaced", 5)
                    .Build());
}

void AddServers(std::vector<Scenario>& all) {
  all.push_back(Builder("server-dies-with-its-commit", "issue 9: killed at any instruction", 3)
                    .OnAll(10, Act::kStartPods, 5)
                    .Each({20, 11, 250}, Act::kKillServer, 1)
                    .Each({21, 17, 250}, Act::kKillServer, 5)
                    .Each({15, 5, 250}, Act::kRestartPods, 3)
                    .Promises("server died", 12)
                    .Promises("server died with its commit", 1)
                    .Build());
  all.push_back(
      Builder("answers-of-commits-are-lost", "issue 9: the cloud's answer was not stored", 3)
          .OnAll(10, Act::kStartPods, 5)
          .At(8, Act::kStoreForgets, 0, 0, 120)
          .At(130, Act::kStoreRefuses, 0, 0, 120)
          .Each({15, 4, 250}, Act::kRestartPods, 3)
          .Promises("commit answer lost", 2)
          .Promises("commit refused", 2)
          .Build());
  all.push_back(Builder("power-is-cut", "issue 9: a failed sync was acknowledged", 2)
                    .OnAll(10, Act::kStartPods, 5)
                    .Each({30, 40, 250}, Act::kRebootServer)
                    .Each({15, 5, 250}, Act::kRestartPods, 3)
                    .Promises("server died", 4)
                    .Build());
  all.push_back(Builder("leader-cut-from-its-store", "Whereabouts: leaders that go on", 4)
                    .Servers(3)
                    .OnAll(10, Act::kStartPods, 6)
                    .At(20, Act::kCloudSlow, 0, 0, 240)
                    .Each({30, 35, 250}, Act::kCutStore, 0, 12)
                    .Each({40, 50, 250}, Act::kCutServer, 0, 20)
                    .Each({15, 4, 250}, Act::kStartPods, 2)
                    .Each({16, 6, 250}, Act::kRestartPods, 3)
                    .Promises("server cut off from the store", 3)
                    .Promises("server started", 3)
                    .Build());
  all.push_back(
      Builder("cloud-answers-late-or-never", "Cilium#43598, ACN PR#781: 200 is no success", 3)
          .At(5, Act::kCloudForgets, 0, 0, 120)
          .At(130, Act::kCloudRefuses, 0, 0, 60)
          .At(60, Act::kCloudSlow, 0, 0, 120)
          .OnAll(10, Act::kStartPods, 6)
          .OnAll(14, Act::kStartPods, 8)
          .OnAll(100, Act::kStartPods, 8)
          .Each({20, 15, 250}, Act::kRestartPods, 3)
          .Promises("cloud answer lost", 1)
          .Build());
  all.push_back(Builder("clocks-are-set", "issue 9: stored times lie ahead", 3)
                    .OnAll(10, Act::kStartPods, 10)
                    .OnAll(60, Act::kStopPods, 8)
                    .At(90, Act::kServerClock, 0, 900)
                    .At(91, Act::kKillServer, 0, 1)
                    .At(200, Act::kServerClock, 0, -1800)
                    .At(201, Act::kKillServer, 0, 1)
                    .Each({100, 12, 300}, Act::kRestartPods, 2)
                    .Promises("server started", 3)
                    .Build());
}

void AddRestores(std::vector<Scenario>& all) {
  all.push_back(Builder("an-older-store-is-restored", "issue 9: a backup is put back", 4)
                    .OnAll(10, Act::kStartPods, 4)
                    .At(60, Act::kBackup)
                    .OnAll(80, Act::kStartPods, 8)
                    .At(150, Act::kRestore)
                    .OnAll(155, Act::kStartPods, 6)
                    .Until(absl::Minutes(8))
                    .Promises("restore")
                    .Promises("server started", 2)
                    .Build());
  all.push_back(Builder("restored-while-a-node-is-away", "issue 9: a silent node is not asked", 4)
                    .OnAll(10, Act::kStartPods, 4)
                    .At(60, Act::kBackup)
                    .OnAll(80, Act::kStartPods, 8)
                    .At(140, Act::kCutNode, 0, 0, 120)
                    .At(150, Act::kRestore)
                    .At(155, Act::kStartPods, 1, 12)
                    .At(155, Act::kStartPods, 2, 12)
                    .Until(absl::Minutes(8))
                    .Promises("restore")
                    .Promises("machine cut off")
                    .Build());
}

// What an agent and its server say to each other at the same time.
void AddCrossings(std::vector<Scenario>& all) {
  Builder taken("asked-for-while-it-is-taken", "Cilium#13412: given up while a pod takes it", 3);
  taken.OnAll(10, Act::kStartPods, 12)
      .OnAll(30, Act::kStopPods, 10)
      .At(72, Act::kNetworkSlow, 0, 100, 130);
  for (uint64_t node = 0; node < 3; ++node) {
    const double second = 75 + 40 * static_cast<double>(node);
    taken.At(second, Act::kDrain, node).At(second + 30, Act::kUndrain, node);
    for (int i = 1; i <= 6; ++i) taken.At(second + 0.4 * i, Act::kStartPods, node, 1);
  }
  all.push_back(taken.Until(absl::Minutes(7)).Promises("asked for what is in use", 2).Build());

  Builder listed("listed-anew-while-it-is-given-up", "a list of before brings back what goes", 4);
  listed.OnAll(10, Act::kStartPods, 12)
      .OnAll(30, Act::kStopPods, 10)
      .At(72, Act::kNetworkSlow, 0, 100, 160);
  for (uint64_t node = 0; node < 4; ++node) {
    const double second = 75 + 40 * static_cast<double>(node);
    // What the operator takes back cannot be stored, so that the node is told anew what it has.
    listed.At(second, Act::kDrain, node)
        .At(second + 0.5, Act::kStoreRefuses, 0, 100, 0.4)
        .At(second + 0.6, Act::kUndrain, node)
        .At(second + 20, Act::kUndrain, node);
    for (int i = 0; i < 8; ++i) listed.At(second + 0.5 * i, Act::kStartPods, node, 1);
  }
  all.push_back(listed.Until(absl::Minutes(8)).Promises("listed anew in a session", 2).Build());

  all.push_back(Builder("plugin-dies-after-the-del", "an ADD that waits outlives its pod", 3)
                    .At(5, Act::kKillPlugins, 0, 60, 250)
                    .At(30, Act::kCloudSlow, 0, 0, 220)
                    .OnAll(10, Act::kStartPods, 6)
                    .Each({40, 7, 250}, Act::kStartPods, 9)
                    .Each({53, 7, 250}, Act::kStopPods, 9)
                    .Until(absl::Minutes(7))
                    .Promises("late hang-up", 5)
                    .Build());
}

// What was used a moment before, and is wanted at once.
void AddCooldowns(std::vector<Scenario>& all) {
  Builder booted("booted-in-quarantine", "what is in quarantine rests like all else after a boot",
                 3);
  booted.OnAll(10, Act::kStartPods, 6).At(50, Act::kCloudSlow, 0, 0, 150);
  for (int which = 0; which < 4; ++which) {
    booted.At(40 + which, Act::kQuarantine, 0, which).At(90 + which, Act::kQuarantine, 1, which);
  }
  all.push_back(booted.At(60, Act::kReboot, 0)
                    .At(66, Act::kStartPods, 0, 12)
                    .At(72, Act::kLift)
                    .At(76, Act::kStopPods, 0, 12)
                    .At(110, Act::kReboot, 1)
                    .At(116, Act::kStartPods, 1, 12)
                    .At(122, Act::kLift)
                    .At(200, Act::kStopPods, 1, 12)
                    .Promises("machine booted", 2)
                    .Promises("quarantine", 8)
                    .Promises("lift", 2)
                    .Build());
  all.push_back(
      Builder("forgotten-and-all-is-wanted", "whereabouts#313: none left but what rests", 3)
          .Pool("10.1.0.0/27")
          .At(10, Act::kStartPods, 0, 8)
          .At(11, Act::kStartPods, 1, 2)
          .At(11, Act::kStartPods, 2, 2)
          .At(20, Act::kStartPods, 1, 6)
          .At(40, Act::kStopPods, 1, 7)
          .At(80, Act::kDrain, 1)
          .At(150, Act::kReplace, 0)
          .At(150.5, Act::kForget, 0)
          .At(151, Act::kStartPods, 2, 14)
          .At(240, Act::kStopPods, 2, 12)
          .At(250, Act::kUndrain, 1)
          .Until(absl::Minutes(8))
          .Promises("forget")
          .Build());
}

// Those who go on from what was so a while ago.
void AddLatecomers(std::vector<Scenario>& all) {
  Builder still("leader-stands-still", "Kleppmann 2016: a pause outlasts the lease", 12);
  still.Servers(3).OnAll(10, Act::kStartPods, 4);
  for (const double second : {40, 110, 180}) {
    // The cloud is asked for more while it answers; and the next leader asks for more still.
    still.OnAll(second - 0.5, Act::kStartPods, 4)
        .OnAll(second - 0.25, Act::kStartPods, 4)
        .OnAll(second - 0.1, Act::kStartPods, 4)
        .At(second, Act::kStandStill, 0, 0, 15)
        .OnAll(second + 8, Act::kStartPods, 5);
  }
  all.push_back(still.Promises("server stood still", 3)
                    .Promises("server started", 4)
                    .Promises("cloud not asked by who may not lead", 1)
                    .Build());
  all.push_back(
      Builder("restored-on-other-machines", "issue 9: only nodes know of a newer store", 3)
          .Pool("10.1.0.0/26")
          .At(10, Act::kStartPods, 0, 12)
          .At(11, Act::kStartPods, 1, 3)
          .At(11, Act::kStartPods, 2, 3)
          .At(40, Act::kStopPods, 0, 10)
          .At(75, Act::kBackup)
          .At(80, Act::kDrain, 0)
          .At(120, Act::kStartPods, 1, 25)
          .At(120, Act::kStartPods, 2, 25)
          .At(175, Act::kStartPods, 0, 8)
          .At(180, Act::kRestore, 0, 1)
          .At(260, Act::kStopPods, 1, 24)
          .At(260, Act::kStopPods, 2, 24)
          .At(265, Act::kUndrain, 0)
          .Until(absl::Minutes(8))
          .Promises("restore")
          .Promises("server started", 2)
          .Build());
}

void AddPolicies(std::vector<Scenario>& all) {
  all.push_back(Builder("policies-while-leaders-die", "a change of policy is half stored", 3)
                    .Servers(3)
                    .OnAll(10, Act::kStartPods, 4)
                    .Each({20, 6, 540}, Act::kApplyPolicy, 130)
                    .Each({23, 17, 540}, Act::kApplyPolicy, 3)
                    .Each({21.5, 12, 540}, Act::kKillServer, 12)
                    .Each({26, 12, 540}, Act::kKillServer, 3)
                    .Each({30, 25, 540}, Act::kStoreForgets, 30, 8)
                    .Each({42, 25, 540}, Act::kStoreRefuses, 30, 8)
                    .Each({33, 19, 540}, Act::kKillAgent, 5)
                    .At(100, Act::kReboot, 1)
                    .Until(absl::Minutes(11))
                    .Promises("policy applied", 8)
                    .Promises("commit in parts", 5)
                    .Promises("server died with its commit", 2)
                    .Build());
  all.push_back(Builder("policies-and-an-older-store", "agents keep what a lost store had", 3)
                    .OnAll(10, Act::kStartPods, 4)
                    .Each({20, 10, 60}, Act::kApplyPolicy, 20)
                    .At(65, Act::kBackup)
                    .Each({70, 10, 120}, Act::kApplyPolicy, 60)
                    .At(125, Act::kServerClock, 0, -600)
                    .At(130, Act::kRestore)
                    .Each({150, 10, 200}, Act::kApplyPolicy, 40)
                    .Promises("policy applied", 10)
                    .Promises("restore")
                    .Build());
}

// Two machines that an operator gave one name, both of which go on.
void AddDoubles(std::vector<Scenario>& all) {
  all.push_back(Builder("two-machines-of-one-name", "a VM is copied with its host name", 3)
                    .OnAll(10, Act::kStartPods, 4)
                    .At(60, Act::kDouble, 0, 4, 130)
                    .Each({70, 30, 200}, Act::kStartPods, 2)
                    .At(200, Act::kStartPods, 0, 20)
                    .At(210, Act::kDouble, 1, 6, 60)
                    .At(220, Act::kKillServer, 0, 1)
                    .At(240, Act::kDrain, 1)
                    .Until(absl::Minutes(8))
                    .Promises("two machines of one name", 2)
                    .Promises("server died")
                    .Build());
  all.push_back(Builder("gone-while-it-is-asked-for", "seed 547: a problem that nothing ends", 6)
                    .OnAll(10, Act::kStartPods, 4)
                    .At(100, Act::kCloudSlow, 0, 0, 19)
                    .Each({103, 1, 113}, Act::kDouble, 3, 6)
                    .Promises("two machines of one name", 10)
                    .Promises("cloud asked for a machine that is gone")
                    .Build());
}

// NICs that are not as the servers have left them.
void AddOtherWriters(std::vector<Scenario>& all) {
  all.push_back(Builder("nics-that-others-write", "a NIC is edited by hand, or by a tool", 3)
                    .OnAll(10, Act::kStartPods, 6)
                    .Each({30, 25, 250}, Act::kTakeOff, 3)
                    .Each({35, 30, 250}, Act::kWriteBack, 0, 20)
                    .Each({40, 7, 250}, Act::kRestartPods, 2)
                    .OnAll(100, Act::kStartPods, 8)
                    .At(140, Act::kWriteBack, 0, 0, 30)
                    .At(142, Act::kWriteBack, 1, 0, 40)
                    .OnAll(102, Act::kStopPods, 10)
                    .At(145, Act::kDrain, 0)
                    .At(146, Act::kDrain, 1)
                    .At(220, Act::kUndrain, 0)
                    .At(220, Act::kUndrain, 1)
                    // By then nothing else has a NIC changed any more.
                    .OnAll(700, Act::kTakeOff, 1)
                    .Until(absl::Minutes(12))
                    .Promises("taken off by others", 8)
                    .Promises("put there by others", 1)
                    .Build());
  all.push_back(Builder("reimaged-without-its-addresses", "a scale set gives a VM its first NIC", 3)
                    .OnAll(10, Act::kStartPods, 6)
                    .At(60, Act::kReimage, 0)
                    .At(100, Act::kReimage, 1)
                    .At(104, Act::kReimage, 1)
                    .At(150, Act::kStaleListings, 0, 0, 100)
                    .At(155, Act::kReimage, 0)
                    .Each({62, 10, 240}, Act::kRestartPods, 2)
                    .Until(absl::Minutes(8))
                    .Promises("machine reimaged", 4)
                    .Promises("taken off by others", 12)
                    .Build());
}

}  // namespace

std::vector<Scenario> AllScenarios() {
  std::vector<Scenario> all;
  AddPods(all);
  AddMachines(all);
  AddForgotten(all);
  AddReleases(all);
  AddServers(all);
  AddRestores(all);
  AddCrossings(all);
  AddCooldowns(all);
  AddLatecomers(all);
  AddOtherWriters(all);
  AddDoubles(all);
  AddPolicies(all);
  AddAudits(all);
  AddOperators(all);
  AddAzure(all);
  AddBlocks(all);
  AddBudgets(all);
  AddPools(all);
  AddLiars(all);
  AddRecoveries(all);
  return all;
}

std::string BrokenPromises(const Scenario& scenario, const RunResult& result) {
  std::string broken;
  for (const Promise& promise : scenario.promises) {
    const auto count = result.counts.find(promise.what);
    const uint64_t times = count == result.counts.end() ? 0 : count->second;
    if (times >= promise.least) continue;
    broken += fmt::format("{}\"{}\" happens {} times, not {}", broken.empty() ? "" : "; ",
                          promise.what, times, promise.least);
  }
  return broken;
}

}  // namespace spoke::sim
