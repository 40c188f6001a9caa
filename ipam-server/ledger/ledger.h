// Who has which address: the records of nodes, the pools that they draw from, and the addresses in
// quarantine. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ipam-server/ledger/node_record.h"
#include "ipam-server/ledger/pool_set.h"
#include "ipam-server/ledger/quarantine.h"
#include "lib/ip/address.h"
#include "lib/ip/prefix.h"

namespace spoke::ipam {

// Keeps records, pools and quarantine in agreement: no address has two nodes, a pool knows who has
// which unit of it and how its addresses are used, and what is in quarantine is handed to nobody.
// It decides nothing. CheckInvariants() is the exact list of what it promises.
//
// Not thread-safe. Movable; not copyable, since its pools point to its records. References to a
// record stay valid until it is unloaded.
class Ledger {
 public:
  // `target`: for pools that have none of their own. `cooldown`: how long an address that has left
  // a NIC is kept from use.
  Ledger(const std::vector<PoolSpec>& pools, const TargetPolicy& target, absl::Duration cooldown);
  Ledger(Ledger&&) = default;
  Ledger& operator=(Ledger&&) = default;

  // --- Whole records: at start, and for a node that is new, has another key, or is no more. ---

  // Puts the record in place of the one with the same key, or adds it. What it holds is held; what
  // it has released cools after FinishLoading(). Errors: kFailedPrecondition (another node holds
  // one of its addresses, or no pool has it: the message says which, and what to do); then nothing
  // has changed.
  absl::StatusOr<NodeRecord*> Upsert(NodeRecord record);
  // Takes a record out, which must be there, and returns it: what it held, nobody holds.
  NodeRecord Unload(const NodeKey& key);
  // Keeps released addresses in cooldown. Whose cooldown was not over by the latest time that is
  // stored has a whole one from `now` on: what has passed since nobody knows, for another server's
  // clock, or this one's before it was set, may have been far from ours. Returns the nodes of which
  // that changed the record, which is to be stored: else the next server would count from before.
  // What cools on a node has a whole cooldown as well; it is stored when the agent is back, before
  // the agent is told of it.
  // Call once, after the last Upsert() of the start.
  std::set<NodeKey> FinishLoading(absl::Time now);

  // Returns the record, or nullptr. Its fields may be changed, except `key`, `configurations`
  // (which there are, their ranges, pools and states, and the use of their slots), `wanted` (which
  // there are, their pools and lengths) and `instance`, but to clear it: these change by the
  // functions here.
  NodeRecord* Find(const NodeKey& key);
  const NodeRecord* Find(const NodeKey& key) const;
  const std::map<NodeKey, NodeRecord>& nodes() const { return nodes_; }

  // --- What a node holds. ---

  // Gives the node the next free unit of the pool, as an attaching configuration that has no name
  // yet. nullptr: none is free at `now`.
  Configuration* Take(NodeRecord& record, size_t pool, absl::Time now);
  // Gives the node just this unit, which a pool must have and nobody must hold, whether it is in
  // cooldown or quarantine. The configuration has no name yet.
  Configuration& Hold(NodeRecord& record, const ip::Prefix& unit, AddressState state,
                      absl::Time since);
  // Ends the configuration that begins with `base`, which must be there: it cools from `now` on.
  void Release(NodeRecord& record, const ip::Address& base, absl::Time now);
  void SetState(Configuration& configuration, AddressState state, absl::Time since);
  // Replaces the slot of one of the configuration's addresses. Returns the former.
  Slot SetSlot(Configuration& configuration, const ip::Address& address, Slot slot);
  // Sets what the node wants of the cloud under `name`; nullopt: nothing.
  void SetWanted(NodeRecord& record, const std::string& name, std::optional<WantedEntry> wanted);

  // --- Instances of the cloud. ---

  // Puts the node on `instance`, which is not empty. Returns the node that was there, which keeps
  // the name in its record; nullopt: nobody was.
  std::optional<NodeKey> SetInstance(NodeRecord& record, std::string instance);
  // Notes that the node is on its instance no more, though its record says which it was.
  void LeaveInstance(const NodeRecord& record);
  // Returns the node that runs on `instance` now; nullptr: none does.
  const NodeRecord* NodeOn(const std::string& instance) const;

  // --- Quarantine and pools. ---

  // Puts the address into quarantine, for another reason or time if it is there already; nullopt:
  // takes it out. It needs not be in a pool.
  void SetQuarantine(const ip::Address& address, std::optional<Quarantine> quarantine);
  const Quarantines& quarantine() const { return quarantine_; }
  // Replaces the pools, of which those that stay keep what is known of their addresses. Errors:
  // kFailedPrecondition (an address that is held, in cooldown or in quarantine would be in another
  // pool than now, or in none); then nothing has changed.
  absl::Status SetPools(const std::vector<PoolSpec>& specs);
  // Ends cooldowns that are over at `now`; of very many at once, a part.
  void EndCooldowns(absl::Time now);
  // Has all that is free rest for a whole cooldown from `now` on: it may have been in use until a
  // moment ago, without a record that says so. Of that only the moment is stored: see
  // RecoveryState::recovered.
  void RestFree(absl::Time now);
  const PoolSet& pools() const { return pools_; }

 private:
  Configuration& Add(NodeRecord& record, PoolEntry& entry, const ip::Prefix& unit, absl::Time now);
  AddressCounts& CountsOf(const Configuration& configuration);
  void CountWanted(const WantedEntry& wanted, bool add);
  absl::Status CheckFits(const AddressPool& pool, const PoolSpec* spec) const;
  void FillPool(PoolEntry& entry, bool is_new);

  absl::Duration cooldown_;
  TargetPolicy target_;
  PoolSet pools_;
  std::map<NodeKey, NodeRecord> nodes_;
  Quarantines quarantine_;
  absl::flat_hash_map<std::string, NodeKey> on_instance_;
};

// Ends the program when the ledger breaks one of its promises. Slow: for tests and audits.
void CheckInvariants(const Ledger& ledger);

// --- Who is where. ---

// Returns the present VM under `name`: the one that is not retired; nullptr: none.
const NodeRecord* FindByName(const Ledger& ledger, const std::string& name);
// Returns the node that holds `address`; nullptr: none does.
const NodeRecord* HolderOf(const Ledger& ledger, const ip::Address& address);
// Returns whether the NIC of its instance is that of `record`: no other machine is in its place.
// Nothing may be changed there otherwise.
bool HasItsInstance(const Ledger& ledger, const NodeRecord& record);
// Returns whether the machine has addresses, or was to get some. One that another has replaced may
// run all the same, and have been told more.
bool HasAddresses(const NodeRecord& record);
// Returns the nodes of which that is so.
std::vector<NodeKey> NodesWithAddresses(const Ledger& ledger);
// Counts addresses over all nodes and pools.
AddressCounts CountAddresses(const Ledger& ledger);

}  // namespace spoke::ipam
