// What is done to a fleet in a run, and when: a list of events that a seed decides, that a scenario
// spells out, and that is made shorter when it has found something. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace spoke::sim {

enum class Act : uint8_t {
  kStartPods,    // `amount` pods are wanted on the machine.
  kStopPods,     // So many less.
  kRestartPods,  // So many containers die, and come back as others.
  kKillAgent,    // After `amount` acts of it.
  kKillAgents,   // All at once, as in an upgrade.
  kReboot,       // The machine boots.
  kReplace,      // Another machine comes under the same name.
  kScaleIn,      // The machine is deleted; after a while another comes under its name.
  kAnnounce,    // The cloud announces for a while that it deletes the machine; `amount` 1: it does.
  kLie,         // Somebody takes over the agent, until the machine is replaced after a while.
  kReimage,     // The machine gets a new disk, and its NIC has no address for pods any more.
  kDouble,      // Another one comes under the same name for a while, and both go on.
  kForget,      // The former ones are deleted at once, and the operator ends their records.
  kCutNode,     // From all servers, for a while.
  kCutServer,   // From all nodes, for a while.
  kKillServer,  // The leader, after `amount` acts of it.
  kRebootServer,  // The leader's machine boots.
  kStandStill,    // The leader's process, for a while, as if no time passed for it.
  kCutStore,      // The leader from its store, for a while.
  kStoreRefuses,  // A share of commits, for a while.
  kStoreForgets,  // A share of the answers of commits is lost, for a while.
  kCloudRefuses,
  kCloudForgets,  // A share of the answers of the cloud is lost, for a while.
  kCloudSlow,
  kTakeOff,    // Somebody else takes the address at `amount` off a machine's NIC.
  kWriteBack,  // Somebody else reads a machine's NIC, and after a while writes back what it had.
  kStaleListings,
  kNetworkSlow,
  kJournalFull,
  kKernelRefuses,
  kLoseDels,     // A share of DELs is lost, and others come twice and late, for a while.
  kKillPlugins,  // A share of plugins that wait is killed, and dies after the DEL, for a while.
  kDrain,
  kUndrain,
  kFreeze,   // The node, for a while.
  kRetry,    // Has the cloud asked for the node at once.
  kRelease,  // Of an address of the node; `amount` 1: of one in use whose pod is gone, by force.
  kReserve,  // `amount` addresses on a machine.
  kEndReservations,
  kBackup,       // The operator copies the store; `amount` 1: with `spokectl backup`, 0: its disk.
  kRestore,      // And puts the copy in its place; `amount` 1: for servers on other machines.
  kServerClock,  // The clock of a server's machine is set, by `amount` seconds.
  kUnfreeze,
  kQuarantine,   // Of an address that the node has: one in use, if there is any.
  kLift,         // Of all quarantines.
  kAudit,        // With all repairs that are safe.
  kApplyPolicy,  // `amount` policy objects, in place of those that there are; some others go.
  kResizePool,   // One of two more pools is made, becomes larger or smaller, or goes; not on Azure.
  kConfirm,      // Of a recovery, though nodes are silent: on Azure they may be unknown, too;
                 // `amount` 1: once all machines with pods have spoken.
};

// For what a share of calls suffers `amount` is the share in percent; 0: some.
// Whom an act befalls: one machine, the agents of all, a server and its store, what all machines
// and servers share (cloud, network, kernels, runtimes), or what an operator asks for.
enum class Target : uint8_t { kMachine, kAllAgents, kServer, kEdges, kOperator };
Target TargetOf(Act act);

struct PlannedEvent {
  absl::Duration at;
  Act act = Act::kStartPods;
  uint64_t target = 0;  // The machine, or the server; taken modulo how many there are.
  int64_t amount = 0;
  absl::Duration lasts;  // For what is over by itself.

  bool operator==(const PlannedEvent&) const = default;
};
using Plan = std::vector<PlannedEvent>;  // Sorted by time.

// Returns "73.5s cut-node 3, for 40s".
std::string Describe(const PlannedEvent& event);

struct PlanSettings {
  int nodes = 6;
  int servers = 1;
  absl::Duration until = absl::Minutes(30);
  double events_per_node_hour = 40;
  bool restores = true;
};
// What `seed` does to a fleet: pods come and go all the time, faults come in waves.
Plan RandomPlan(uint64_t seed, const PlanSettings& settings);

}  // namespace spoke::sim
