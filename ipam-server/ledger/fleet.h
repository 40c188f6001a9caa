// All that the server decides from about nodes and addresses, as one value. Pure.
//
// A decision is a function that takes this state, a message and the time, changes the state, and
// returns what must follow: see ledger/decisions. A query takes it const. The loop that owns it
// stores what has changed before it carries out the rest.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "ipam-server/ledger/fleet_policy.h"
#include "ipam-server/ledger/ledger.h"
#include "ipam-server/ledger/node_record.h"
#include "ipam-server/ledger/quarantine.h"
#include "ipam-server/release/breaker.h"
#include "ipam-server/reservations/reservation.h"
#include "lib/ip/address.h"
#include "lib/ip/prefix.h"
#include "lib/node_api/desired.h"

namespace spoke::ipam {

// What an agent said of its pods that wait. It is neither stored nor part of the record: it holds
// for one session of the agent, which says all of it again in the next, so a server that starts
// anew has nothing to remember. Kept, it would go on asking for pods that gave up while the agent
// was away.
struct StatedDemand {
  node_api::Demand said;
  // The pods of these that were served since. Their addresses are used now; until the agent has
  // said so they must not count a second time, or each burst would be asked for twice.
  std::map<std::string, uint32_t> served = {};
  absl::Time served_at = {};
};

// A machine that the cloud is about to delete, as its agent says.
struct EndingMachine {
  std::string kind;        // The cloud's word for it: "Preempt".
  bool announced = false;  // The agent says so now.
  // It counts: the node gets nothing more, and gives back what no pod uses.
  bool believed = false;
  absl::Time called_off = absl::InfinitePast();      // When it was last taken back.
  absl::Time unsaid_since = absl::InfiniteFuture();  // Its agent has a new session, and is silent.
};

// An address that is attached, but was not on the NIC when it was looked at.
struct OffNic {
  absl::Time since;
  bool reported = false;
  absl::Time asked_until = absl::InfinitePast();  // Its agent was asked to give it up.
};

// What is gathered while the store may be older than what nodes were told (ledger/recovery.h).
struct RecoveryHold {
  bool active = false;                   // Nothing is allocated, asked for or freed.
  std::set<ip::Prefix> doubtful;         // Their node does not have them.
  std::map<ip::Prefix, NodeKey> claims;  // The node has it, and so has another here: undecided.
  std::set<NodeKey> greet_anew;          // The assignments they report were not taken.
};

// Not thread-safe; one loop owns it. Movable; not copyable. What has to agree with one another is
// behind the functions of a class; what has not is plain.
struct Fleet {
  Fleet(const std::vector<PoolSpec>& pools, const FleetPolicy& by);

  FleetPolicy policy;

  // --- What is stored. ---
  Ledger ledger;
  ReservationBook reservations;
  MassReleaseBreaker breaker;
  bool was_behind = false;  // A recovery was over once: see RecoveryState::recovered.

  // --- What agents said in sessions that go on. ---
  std::map<NodeKey, StatedDemand> demands;  // The nodes where pods wait.
  // The nodes whose machines the cloud is about to delete, or was of late
  // (decisions/maintenance.h).
  std::map<NodeKey, EndingMachine> ending;
  // What pods use by the word of their agents and their nodes' records do not hold: in no pool, or
  // of one that does not serve the node. It stays on the NIC. At most as many as that takes.
  std::map<NodeKey, std::set<ip::Address>> used_unheld;
  // The addresses that two may have. Not all are in quarantine: an agent's reports put few away.
  std::map<ip::Address, DoubledAddress> doubled;

  // --- What was seen since the start. ---
  RecoveryHold hold;
  std::set<NodeKey> heard;              // Nodes whose agents have said hello.
  std::set<NodeKey> proved;             // Nodes whose certificates name the instance.
  std::set<NodeKey> conflicts_refused;  // Nodes that reported more conflicts than are believed.
  std::map<std::string, std::set<ip::Address>> refused_claims;  // Keyed by node; in quarantine.
  // Asked for, and not answered; and when the breaker let it go.
  std::map<ip::Prefix, absl::Time> judged;
  std::map<ip::Address, OffNic> off_nic;
  std::set<NodeKey> missing;  // Nodes that the last listing lacks.
  // Nodes that hold nothing and wait for cooldowns only; and when the record of one may go whose
  // name another has.
  std::map<NodeKey, absl::Time> forgettable;
  std::set<NodeKey> unsettled;  // Nodes that were given what they cannot use (yet).
  NodeKey settled;              // The one of them that was looked at last.
};

// Whether agents are not told of it: a pod that has it keeps it, and no other gets it. It is in
// quarantine, or was not on the NIC in two looks at it: a pod would be cut off.
bool IsWithheld(const Fleet& fleet, const Configuration& configuration);

// Returns what of it is of use to its node: all, but of what is withheld only what pods have had
// and may have still. A block is withheld as a whole.
AddressCounts CountOfUse(const Fleet& fleet, const Configuration& configuration);

// Makes what follows from the records, once all that is stored has been put in. Returns the nodes
// whose records are to be stored anew. Call once.
std::set<NodeKey> FinishLoading(Fleet& fleet, absl::Time now);
// Takes over what agents said in sessions that go on and nobody stores, when what was loaded
// replaces `former`.
void TakeUnstored(Fleet& fleet, const Fleet& former);

}  // namespace spoke::ipam
