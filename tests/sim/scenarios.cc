#include "tests/sim/scenarios.h"

#include <string>

#include "fmt/core.h"

namespace spoke::sim {
namespace {

constexpr absl::Duration kBreath = absl::Seconds(5);

void StartPods(Simulation& world, const std::string& node, int count) {
  for (int i = 0; i < count; ++i) world.node(node).runtime().StartPod();
}

void KillAgent(Simulation& world, const std::string& node) {
  if (AgentProcess* agent = world.node(node).agent(); agent != nullptr) agent->Kill();
}

// A pod is deleted while its ADD is on its way.
void DeleteDuringAdd(Simulation& world) {
  world.RunFor(absl::Minutes(1));
  for (int i = 0; i < 10; ++i) {
    StartPods(world, "node1", 1);
    world.RunFor(absl::Milliseconds(1 + i));
    world.node("node1").runtime().GiveUpOne();
    StartPods(world, "node1", 1);
    world.RunFor(kBreath);
  }
}

// A machine is replaced by another under the same name while pods run on it.
void ReplacedUnderTheSameName(Simulation& world) {
  world.RunFor(absl::Minutes(1));
  StartPods(world, "node1", 4);
  world.RunFor(absl::Minutes(1));
  world.RemoveMachine("node1");
  world.RunFor(absl::Seconds(40));
  world.AddNode("node1");
  world.RunFor(absl::Minutes(1));
  StartPods(world, "node1", 4);
  world.RunFor(absl::Minutes(5));
}

// The agent dies at each of the steps of attaching and detaching, one after the other.
void AgentDiesAtEachStep(Simulation& world) {
  world.RunFor(absl::Minutes(1));
  for (int step = 1; step <= 24; ++step) {
    StartPods(world, "node1", 2);
    if (AgentProcess* agent = world.node("node1").agent(); agent != nullptr) {
      agent->DieAtStep(step);
    }
    world.RunFor(absl::Seconds(20));
    world.node("node1").runtime().StopPod();
    world.node("node1").runtime().StopPod();
    world.RunFor(absl::Seconds(20));
  }
}

// The runtime is killed over and over, and makes each sandbox anew.
void RuntimeInACrashLoop(Simulation& world) {
  world.RunFor(absl::Minutes(1));
  StartPods(world, "node1", 6);
  for (int i = 0; i < 40; ++i) {
    world.node("node1").runtime().Kill();
    world.RunFor(absl::Seconds(12));
    world.node("node1").runtime().StopPod();
    StartPods(world, "node1", 1);
    world.RunFor(absl::Seconds(1));
  }
  world.RunFor(absl::Minutes(5));
}

// All nodes want many pods in one moment, the server being away as they ask.
void BurstWithoutAServer(Simulation& world) {
  world.RunFor(absl::Minutes(1));
  world.KeepServersDown(absl::Seconds(30));
  for (const char* node : {"node1", "node2", "node3"}) StartPods(world, node, 8);
  world.RunFor(absl::Minutes(3));
}

// A node reboots while it is being drained: what it had agreed to give up is not assigned again.
void RebootDuringADrain(Simulation& world) {
  world.RunFor(absl::Minutes(1));
  StartPods(world, "node1", 6);
  world.RunFor(absl::Minutes(1));
  for (int i = 0; i < 6; ++i) world.node("node1").runtime().StopPod();
  world.RunFor(absl::Minutes(1));
  world.SetMode("node1", ipam::NodeMode::kDraining);
  world.RunFor(absl::Milliseconds(20));
  world.node("node1").Reboot();
  world.RunFor(absl::Minutes(2));
  world.SetMode("node1", ipam::NodeMode::kActive);
  StartPods(world, "node1", 3);
  world.RunFor(absl::Minutes(3));
}

// Pods come just after addresses were asked back, and go and come again.
void UpRightAfterDown(Simulation& world) {
  world.RunFor(absl::Minutes(1));
  for (int i = 0; i < 8; ++i) {
    StartPods(world, "node1", 8);
    world.RunFor(absl::Seconds(40));
    for (int j = 0; j < 8; ++j) world.node("node1").runtime().StopPod();
    world.RunFor(absl::Seconds(60 + 7 * i));
  }
}

// An older store is put in the place of the present one, and pods have come since.
void RestoredFromABackup(Simulation& world) {
  world.RunFor(absl::Minutes(1));
  StartPods(world, "node1", 3);
  world.RunFor(absl::Minutes(1));
  world.KeepBackup();
  StartPods(world, "node1", 5);
  StartPods(world, "node2", 5);
  world.RunFor(absl::Minutes(2));
  world.Restore();
  StartPods(world, "node3", 8);
  world.RunFor(absl::Minutes(5));
}

// Machines go without a word, until a pool would be full of their addresses.
void MachinesThatAreNoMore(Simulation& world) {
  world.RunFor(absl::Minutes(1));
  for (int i = 4; i < 24; ++i) {
    const std::string name = fmt::format("node{}", i);
    world.AddNode(name);
    world.RunFor(absl::Minutes(1));
    StartPods(world, name, 6);
    world.RunFor(absl::Minutes(1));
    world.RemoveMachine(name);
    world.RunFor(absl::Minutes(2));
  }
}

// The leader stands still for longer than its lease, and goes on with what it was at.
void LeaderStandsStill(Simulation& world) {
  world.RunFor(absl::Minutes(1));
  for (int i = 0; i < 6; ++i) {
    StartPods(world, "node1", 3);
    world.RunFor(absl::Milliseconds(30));
    if (ServerProcess* leader = world.Leader(); leader != nullptr) {
      leader->PauseFor(absl::Seconds(8));
    }
    StartPods(world, "node2", 3);
    world.RunFor(absl::Seconds(30));
    for (int j = 0; j < 3; ++j) {
      world.node("node1").runtime().StopPod();
      world.node("node2").runtime().StopPod();
    }
    world.RunFor(absl::Minutes(2));
  }
}

// The clock of a node is set ahead while addresses rest, and its agent is started again.
void ClockSetAheadOverARestart(Simulation& world) {
  world.RunFor(absl::Minutes(1));
  for (int i = 0; i < 3; ++i) {
    StartPods(world, "node1", 3);
    world.RunFor(absl::Seconds(20));
    for (int j = 0; j < 3; ++j) world.node("node1").runtime().StopPod();
    world.RunFor(absl::Seconds(1));
    world.node("node1").state().machine.SetClock(absl::Hours(1));
    KillAgent(world, "node1");
    StartPods(world, "node1", 12);
    world.RunFor(absl::Minutes(2));
    for (int j = 0; j < 12; ++j) world.node("node1").runtime().StopPod();
    world.RunFor(absl::Minutes(2));
  }
}

}  // namespace

const std::vector<Scenario>& AllScenarios() {
  static const std::vector<Scenario> all = {
      {"delete_during_add",
       "azure-container-networking 4829: a DEL races an ADD under way",
       {Fault::kAddGivenUp},
       &DeleteDuringAdd},
      {"replaced_under_the_same_name",
       "azure-container-networking 4210: a replaced VM reads the state of the one before",
       {},
       &ReplacedUnderTheSameName},
      {"agent_dies_at_each_step",
       "azure-container-networking 1259: several pods have one address after a restart",
       {},
       &AgentDiesAtEachStep},
      {"runtime_in_a_crash_loop",
       "azure-container-networking 4497: each new sandbox leaks an address",
       {Fault::kRuntimeKilled},
       &RuntimeInACrashLoop},
      {"burst_without_a_server",
       "azure-container-networking 2999: all pods are scheduled anew at once",
       {},
       &BurstWithoutAServer},
      {"reboot_during_a_drain",
       "azure-container-networking 2022: a released address is available again after a reboot",
       {Fault::kNodeRebooted},
       &RebootDuringADrain},
      {"up_right_after_down",
       "azure-container-networking 962, cilium 13412: released while it is assigned to a pod",
       {},
       &UpRightAfterDown},
      {"restored_from_a_backup",
       "calico 8446: addresses in use without an allocation",
       {Fault::kBackupRestored},
       &RestoredFromABackup},
      {"machines_that_are_no_more",
       "cilium 17837: dangling nodes use up the pool",
       {},
       &MachinesThatAreNoMore},
      {"leader_stands_still",
       "whereabouts, leader election: two decide at once",
       {Fault::kTakeover},
       &LeaderStandsStill,
       3},
      {"clock_set_ahead_over_a_restart",
       "this simulation: a cooldown that a jump of the clock ends",
       {},
       &ClockSetAheadOverARestart},
  };
  return all;
}

Outcome Play(const Scenario& scenario, bool print) {
  Shape shape = SmallShape();
  shape.servers = scenario.servers;
  shape.agents.servers.clear();
  for (size_t i = 0; i < scenario.servers; ++i) {
    shape.agents.servers.push_back(fmt::format("server{}", i + 1));
  }
  Simulation world({.seed = 1, .shape = shape, .print = print});
  scenario.play(world);
  Outcome outcome = world.Finish();
  for (const Fault fault : scenario.reaches) {
    if (outcome.violation || outcome.coverage.of(fault) > 0) continue;
    outcome.violation = fmt::format("the scenario does not reach {} any more", NameOf(fault));
  }
  return outcome;
}

}  // namespace spoke::sim
