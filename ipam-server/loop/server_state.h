// Everything the server decides from, and how it comes out of the store.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ipam-server/cloud/cloud.h"
#include "ipam-server/history/history.h"
#include "ipam-server/ledger/effects.h"
#include "ipam-server/ledger/fleet.h"
#include "ipam-server/ledger/fleet_policy.h"
#include "ipam-server/ledger/recovery.h"
#include "ipam-server/policy/objects/bundle.h"
#include "ipam-server/policy/objects/object_set.h"
#include "ipam-server/policy/staged_policy.h"
#include "ipam-server/store/store.h"

namespace spoke::ipam {

// Not thread-safe; the loop owns it.
struct ServerState {
  Fleet fleet;
  ObjectSet objects;
  BundleHistory bundles;
  // The pools of the configuration file, as objects that cannot be replaced.
  std::vector<PolicyObject> configured;
  Recovery recovery;
  // The version of the bundles that may end any number of connections, an operator says; 0: none.
  // It is in no store: after the server's start nodes that still hold it back do so anew.
  uint64_t cuts_accepted = 0;
};

struct ServerSettings {
  std::vector<PoolSpec> pools;  // The configuration file's.
  FleetPolicy fleet;
  std::vector<ProtectedAddress> protected_addresses = {};  // Where agents reach this server.
  std::string new_store_id = "new";                        // A new store's id; random.
  // How many of its connections a policy may end on a node without an operator's word, per 1000.
  uint32_t max_cut_permille = 50;
  // The longest that what agents say gathers after a commit of it, so that the next stores more;
  // for a store where each costs several machines a round trip and a write to disk. Operators do
  // not wait for it, and what is enough for a commit does not. Zero: it does not gather.
  absl::Duration gather = absl::ZeroDuration();
};

struct LoadedState {
  ServerState state;
  Revisions revisions;
  HistoryKeyParts newest_chunk;
  std::set<NodeKey> changed;  // The nodes whose records are to be stored anew.
};

// Finishes a change of policy that a crash has cut short (policy/staged_policy.h); writes nothing
// else. Errors: as Store::List() and Store::Commit(); kDataLoss (a damaged record: the message
// names its key); kFailedPrecondition (records that contradict each other or the configuration).
absl::StatusOr<LoadedState> LoadState(Store& store, const ServerSettings& settings, absl::Time now);

// What `record` says is to be on the NIC. `pods_wait`: for addresses that the node does not have.
NicRequest NicOf(const NodeRecord& record, bool pods_wait = false);
// Returns all NICs of nodes that have not been replaced: what a cloud without memory starts from.
std::vector<NicAddresses> AllNics(const Fleet& fleet);

// The pools in force: those of the file, then those that were applied, by name.
std::vector<PoolSpec> PoolsOf(const ServerSettings& settings, const ObjectSet& objects);

// The store is taken for the newest there is: what was held up goes on. Call when !recovery.open().
Effects EndRecovery(ServerState& state, absl::Time now);
// An operator decides so, though `silent` nodes have not spoken; nodes whose marks cannot be
// verified are taken in for a while. Errors: kFailedPrecondition (another number is silent: the
// message says which; or there is nothing to confirm).
absl::StatusOr<Effects> ConfirmRecovery(ServerState& state, uint64_t silent, absl::Time now);
// The nodes whose NIC has not been seen, or was being changed.
std::set<NodeKey> NodesToAsk(const Fleet& fleet);

// How the pools are used, as PlanApply() has to know.
std::map<ObjectKey, ObjectUse> PoolUses(const Fleet& fleet);

}  // namespace spoke::ipam
