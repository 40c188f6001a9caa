// All nodes and pools: what each message changes, and what must follow. Pure: the loop that owns it
// stores the records it names before it carries out the rest.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ipam-server/history/history.h"
#include "ipam-server/ledger/node_record.h"
#include "ipam-server/pools/address_pool.h"
#include "ipam-server/pools/pool_plan.h"
#include "ipam-server/release/breaker.h"
#include "ipam-server/release/release_plan.h"
#include "ipam-server/reservations/reservation.h"
#include "lib/node_api/assignments.h"
#include "lib/node_api/desired.h"
#include "lib/node_api/session.h"

namespace spoke::ipam {

// Something an operator should read: an agent, the cloud and the store disagree.
struct Finding {
  enum class Kind {
    kAdopted,        // Its agent assigns it, unknown here and free: taken over as attached.
    kRefused,        // Its agent assigns it; it is free, and beyond what the node can have.
    kHeldElsewhere,  // Its agent assigns it, but another node holds it: two pods may share it.
    kForeign,        // Its agent assigns it, but it is in none of our pools.
    kConflict,       // Its agent says that another machine answers for it.
    kRenamed,        // The same machine has another VM id now.
    kReplaced,       // Another VM has the node's name now; this one is retired.
    kForced,         // An operator ends its assignment.
    kDisplaced,      // Another node has proved that it is on the instance this one claimed.
    kGone,           // The cloud says the VM is no more; its addresses are free.
    kFrozen,         // The breaker has stopped releases.
    kLost,           // It was attached, but twice not on the NIC: somebody else took it off.
    kUnusable,       // The cloud chose an address that no pod may have (yet).
  };
  Kind kind;
  NodeKey node;
  ip::Address address;
  std::string detail;

  bool operator==(const Finding&) const = default;
};

// Why an address must not be handed out.
struct Quarantine {
  std::string reason;
  absl::Time since;
  // Ends by itself then: an agent's report put it there, and may be mistaken. nullopt: an operator
  // did, and only an operator ends it.
  std::optional<absl::Time> until = {};
  bool doubled = false;  // `reason` names two that have it.

  bool operator==(const Quarantine&) const = default;
};

// An address that two have at once.
struct DoubledAddress {
  std::string holders;  // Both of them, a clause: "node a holds it, and ... answers for it".
  NodeKey holder;       // The node whose agent reported it, or that has it here.
  // The node whose agent says that it has what `holder` holds, until it says otherwise; nullopt:
  // another machine was heard.
  std::optional<NodeKey> claimant = {};
  absl::Time until = absl::InfiniteFuture();  // It is over then, unless reported again.

  bool operator==(const DoubledAddress&) const = default;
};

// What follows from an event. Nothing of it may be said or done before the records are stored.
struct Effects {
  std::set<NodeKey> changed;           // Records to store; one that is gone is to be removed.
  std::set<ip::Address> quarantined;   // Quarantine entries to store or remove.
  std::set<std::string> reservations;  // Reservations to store or remove.
  bool breaker = false;                // Its state is to be stored.
  bool recovery = false;               // The recovery's state is to be stored.
  std::set<NodeKey> plan;              // Nodes to call Plan() for soon, some at a time.
  std::set<NodeKey> attach;            // Nodes whose NIC the cloud must be asked to change.
  std::set<NodeKey> retry;             // Nodes for which earlier refusals do not count.
  std::set<NodeKey> desired;           // Nodes whose agents must be told what they have.
  std::set<NodeKey> resend;            // Nodes whose agents must be told all of it anew.
  std::map<NodeKey, std::string> greet_anew;  // Nodes whose sessions must begin anew, and why.
  std::map<NodeKey, NodeKey> renamed;  // Records that have another key now, by the one before.
  std::map<NodeKey, std::vector<ip::Prefix>> reclaim;  // What agents are to be asked for.
  std::map<NodeKey, std::vector<node_api::EndAssignment>> end_assignments;  // What is over.
  std::vector<Finding> findings;
  std::vector<HistoryEntry> history;
  std::vector<absl::Duration> attach_times;  // Times from an allocation to the NIC, for metrics.

  void Merge(Effects other);
  // Whether anything has to be stored.
  bool Stores() const;
};

// What happened to `address` of the node; `slot` as well, where it is about an assignment.
HistoryEntry EntryOf(HistoryEvent event, const NodeKey& node, const ip::Address& address,
                     absl::Time at, const Slot* slot = nullptr);

// How far agents' reports of conflicts put addresses into quarantine by themselves.
struct ConflictPolicy {
  absl::Duration quarantine = absl::Minutes(10);  // Begun anew by each report.
  uint32_t per_node = 4;                          // The addresses at a time.
  double share = 0.02;                            // The share of a pool at a time.
  uint64_t floor = 8;                             // The addresses of a pool, however small it is.
};

// A machine that an operator takes for gone.
struct Farewell {
  std::string node;
  std::string vm_id;    // Empty: the only one under the name.
  uint64_t in_use = 0;  // Addresses that its pods used, as the operator has read.
  // The machines under the name whose agents have no session, with the epoch of their last.
  std::map<NodeKey, uint64_t> silent;
};
struct Forgotten {
  NodeKey node;
  uint64_t addresses = 0;  // Addresses that are free after the cooldown.
  Effects effects;
};

struct FleetPolicy {
  TargetPolicy target;
  absl::Duration cooldown = absl::Seconds(30);
  // The end of a large job, spread over an hour, stays below the breaker, whose window is one round
  // of reviews; what suddenly frees many at once does not.
  ReleasePolicy release{.jitter_spread = absl::Hours(1)};
  BreakerPolicy breaker{.window = absl::Minutes(1)};
  ConflictPolicy conflict;
  // A NIC of Azure takes 256 IP configurations, the primary one included.
  uint32_t nic_configurations = 255;
  // The cloud says which address a new entry gets; otherwise we do.
  bool cloud_chooses = false;
  std::string name_prefix = "spoke-";  // The prefix of our entries' names.
  // The machines with addresses under one name: a replaced one has them until the cloud says gone.
  uint32_t machines_per_name = 4;
  // How long an attached address must be off its NIC before that is believed.
  absl::Duration lost_after = absl::Minutes(1);
};

// What one node draws from: pools of one family that serve the same pods, in their order.
struct PoolGroup {
  ip::Family family = ip::Family::kV4;
  std::vector<std::string> namespaces;
  TargetPolicy target;
  std::vector<size_t> pools;  // Indices into Fleet::pools().
};

// A pool with how its addresses on NICs are used.
struct PoolEntry {
  AddressPool pool;
  AddressCounts counts;
  uint64_t asked = 0;  // Addresses that the cloud has yet to choose from it; in `counts` as well.

  uint64_t free() const { return pool.free() > asked ? pool.free() - asked : 0; }
};

// How it stands with the change of one node's NIC.
struct CloudStanding {
  std::optional<absl::Time> eta;  // nullopt: nothing is under way, or nothing can be said.
  std::string waits_for;          // What holds it up, in words.
  std::string failure;            // What became of the last attempt, a clause; empty: nothing bad.
  std::optional<absl::Time> retry_at;  // The next try; nullopt: it is being tried now.
};

// Not thread-safe; one loop owns it. Movable; not copyable, since its pools point to its records.
class Fleet {
 public:
  Fleet(const std::vector<PoolSpec>& pools, const FleetPolicy& policy);
  Fleet(Fleet&&) = default;
  Fleet& operator=(Fleet&&) = default;

  // --- Start: in any order, then FinishLoading(). ---

  // Takes a stored record over. Errors: kFailedPrecondition when an address is held twice or lies
  // in no pool: the message says which, and what to do.
  absl::Status Load(NodeRecord record);
  void LoadQuarantine(const ip::Address& address, Quarantine quarantine);
  void LoadReservation(Reservation reservation);
  void LoadBreaker(const BreakerState& state);
  // Keeps released addresses in cooldown for the rest of their time.
  void FinishLoading(absl::Time now);

  // --- What agents say. ---

  // Whether the node may be who its agent says: to be asked before OnHello(). `instance_proved`, in
  // both: by the certificate; otherwise the agent only says so. Errors:
  // kPermissionDenied (on the instance of another node, or on another than it was before; what a
  // certificate proves goes before what an agent only says), kResourceExhausted (too many machines
  // under its name hold addresses). The message says which, and what to do.
  absl::Status CheckIdentity(const node_api::Hello& hello, bool instance_proved = false) const;

  // An agent opened a session. The record's session_epoch is raised, a new boot ends the
  // assignments of the old one, an older VM under the name is retired, and the node is brought
  // towards its target.
  Effects OnHello(const node_api::Hello& hello, absl::Time now, bool instance_proved = false);

  // Stale parts of a report (an older generation, an address the node does not hold) change
  // nothing.
  Effects OnReport(const NodeKey& key, const node_api::AssignmentReport& report, absl::Time now);

  // Which pods wait there now. What the node lacks for all of them is assigned in one step; of an
  // unknown node it is ignored.
  Effects OnDemand(const NodeKey& key, node_api::Demand demand, absl::Time now);

  // The session in which it was said is over.
  void EndDemand(const NodeKey& key) { demands_.erase(key); }
  // What agents said in sessions that go on and nobody stores, when what was loaded replaces
  // `former`.
  void TakeUnstored(const Fleet& former);

  // The caller has made sure that it answers a request of the present session.
  Effects OnReclaimAnswer(const NodeKey& key, const node_api::ReclaimAnswer& answer,
                          absl::Time now);

  // Notes that another machine answers for an address of this node: it is doubled(), and
  // quarantined for a time, if not too many are.
  Effects OnConflict(const NodeKey& key, const ip::Address& address, const std::string& other,
                     absl::Time now);

  // --- What the cloud says. ---

  // Takes that exactly `on_nic` of ours is on the node's NIC, after a change that was asked for.
  // Where the cloud chooses, entries unknown so far are taken over.
  Effects OnNic(const NodeKey& key, const std::vector<IpConfiguration>& on_nic, absl::Time now);

  // A listing, which may be a little old, says so: when it differs from what is known, the NIC
  // itself is to be looked at. Changes nothing.
  Effects OnListedNic(const NodeKey& key, const std::vector<IpConfiguration>& on_nic) const;

  // A complete listing has just these nodes. One that is missing twice in a row, and has no session
  // (`connected`), is gone: its addresses are free. Freezes instead when too many are missing; one
  // whose name another VM has taken does not count there.
  Effects OnListing(const std::set<NodeKey>& present, const std::set<NodeKey>& connected,
                    absl::Time now);

  // --- While the store may be older than what nodes were told (ledger/recovery.h). ---

  // Stops all allocation, requests and frees from now on, until EndRecovery().
  void Hold() { held_ = true; }
  // All that the node holds and assigns. What it was told of by a store that knew more is its own,
  // unless another node has it and has yet to speak.
  Effects OnInventory(const NodeKey& key, const node_api::Inventory& inventory, absl::Time now);
  // Decides what is left open, in favour of the nodes in `spoken`. What a silent node has, stays.
  Effects EndRecovery(const std::set<NodeKey>& spoken, absl::Time now);
  // The agent is refused; what it says its pods use is kept from others for a while.
  void HoldClaims(const node_api::Hello& hello, Effects& effects, absl::Time now);
  // Returns how many addresses or blocks one node holds and another had, which is undecided.
  uint64_t UndecidedClaims() const { return claims_.size(); }
  // Returns the nodes that have addresses and that no other VM has replaced.
  std::vector<NodeKey> NodesWithAddresses() const;

  // --- What operators want. On an error nothing has changed. ---

  // Errors: kNotFound; kFailedPrecondition (retired).
  absl::StatusOr<Effects> SetMode(const std::string& node, NodeMode mode, absl::Time now);
  // Ends the record of a machine that is gone: its addresses are free after the cooldown. Errors:
  // kNotFound, kInvalidArgument (several machines have the name), kFailedPrecondition (its agent is
  // connected; the cloud has not said that it is gone, where clouds know; another number of its
  // addresses is in use than `farewell` says; or a recovery is under way).
  absl::StatusOr<Forgotten> Forget(const Farewell& farewell, absl::Time now);
  // Asks the cloud for the node's NIC at once, whatever it refused before. Errors: kNotFound,
  // kFailedPrecondition (retired, or a recovery is under way).
  absl::StatusOr<Effects> Retry(const std::string& node);
  // Asks for an available address. Errors: kNotFound (in no pool, or free); kFailedPrecondition
  // (assigned, in cooldown, or held by another node than `node`, when that is not empty; or a
  // recovery is under way).
  absl::StatusOr<Effects> Release(const ip::Address& address, const std::string& node);
  // Has the agent end the assignment of `address`, whose pod's end was lost. It is over once the
  // agent reports so. Errors: kInvalidArgument (no reason); kNotFound, kFailedPrecondition (not
  // assigned; else as Release()).
  absl::StatusOr<Effects> ForceRelease(const ip::Address& address, const std::string& node,
                                       const std::string& reason);
  // Errors: kNotFound (in no pool); kAlreadyExists, kFailedPrecondition (is, or is not, already).
  absl::StatusOr<Effects> SetQuarantine(const ip::Address& address,
                                        std::optional<Quarantine> quarantine, absl::Time now);
  // Errors: as ReservationBook::Plan(); kFailedPrecondition (a recovery is under way). With
  // `dry_run` nothing changes, whatever the answer. The addresses are promised with this; Plan() of
  // its nodes assigns them.
  absl::StatusOr<Effects> Reserve(const ReservationRequest& request, absl::Time now, bool dry_run);
  // Errors: kNotFound.
  absl::StatusOr<Effects> EndReservation(const std::string& name);
  // Replaces the pools, of which those that stay keep what is known of their addresses. Errors:
  // kFailedPrecondition (an address that is held, in cooldown or in quarantine would be in another
  // pool than now, or in none).
  absl::Status SetPools(const std::vector<PoolSpec>& specs);
  // Lifts the breaker's freeze, if there is one.
  Effects Unfreeze(absl::Time now);
  // Records that the node's agent assigns the address, as an audit has found it to do.
  Effects TakeAssignment(const NodeKey& key, const node_api::Assignment& assignment,
                         absl::Time now);
  // Records that the assignment of `address` is over, unless a newer one than `generation` is.
  Effects EndAssignment(const NodeKey& key, const ip::Address& address, uint64_t generation,
                        absl::Time now);

  // --- Time. ---

  // Assigns what the node lacks to its target. Safe at any time.
  Effects Plan(const NodeKey& key, absl::Time now);
  // Does what Plan() does, and asks for what the node has too much of. Call it for each node
  // about once a review period; `jitter` in [0, 1) spreads what becomes due at once.
  Effects Review(const NodeKey& key, double jitter, absl::Time now);
  // Ends reservations and cooldowns whose time is over, and forgets nodes that left nothing; of
  // what may be due for many nodes at once, a part. It is to be called some times a second.
  Effects Expire(absl::Time now);

  // --- What is known. ---

  const NodeRecord* Find(const NodeKey& key) const;
  // The present VM under `name`: the one that is not retired; nullptr: none.
  const NodeRecord* FindByName(const std::string& name) const;
  const std::map<NodeKey, NodeRecord>& nodes() const { return nodes_; }
  const std::vector<PoolEntry>& pools() const { return pools_; }
  const FleetPolicy& policy() const { return policy_; }
  const std::map<ip::Address, Quarantine>& quarantine() const { return quarantine_; }
  // The addresses that two may have. Not all are in quarantine: an agent's reports put few away.
  const std::map<ip::Address, DoubledAddress>& doubled() const { return doubled_; }
  const ReservationBook& reservations() const { return reservations_; }
  const MassReleaseBreaker& breaker() const { return breaker_; }
  // Counts addresses over all nodes and pools.
  AddressCounts Counts() const;
  // The node that runs on `instance` now; nullptr: none does.
  const NodeRecord* NodeOn(const std::string& instance) const;
  // Whether the NIC of its instance is that of `record`: no other machine is in its place. Nothing
  // may be changed there otherwise.
  bool HasItsInstance(const NodeRecord& record) const;

  // The node that holds `address`, or nullptr.
  const NodeRecord* HolderOf(const ip::Address& address) const;
  const AddressPool* PoolOf(const ip::Address& address) const;
  const PoolEntry* PoolNamed(const std::string& name) const;

  // How many of the pool's free addresses are promised to reservations.
  uint64_t PromisedOf(const std::string& pool) const;
  Promises AllPromises() const;

  // What a node with these labels draws from.
  // `subnets`: of its NIC, where known; then only pools inside them serve it.
  const std::vector<PoolGroup>& GroupsFor(const std::map<std::string, std::string>& labels,
                                          const std::string& vnet,
                                          const std::vector<ip::Prefix>& subnets) const;
  const std::vector<PoolGroup>& GroupsFor(const NodeRecord& record) const {
    return GroupsFor(record.labels, record.vnet, record.subnets);
  }

  // How many addresses the node should hold, over all pools it draws from.
  uint64_t TargetOf(const NodeRecord& record) const;
  // Whether it has fewer than that.
  bool IsShort(const NodeRecord& record) const;
  // Returns why the node has fewer addresses than its target, in words; empty: it has not.
  std::string ShortageOf(const NodeRecord& record) const;

  // What the node's agent last said that waits; nullptr: nothing does.
  const node_api::Demand* DemandOf(const NodeKey& key) const;
  // The nodes where pods wait.
  std::vector<NodeKey> NodesInDemand() const;
  // Returns the waiting pods of all nodes.
  uint64_t WaitingPods() const;
  // How it stands with what the node's pods wait for, for its agent to say. The text holds no time
  // that passes, so that it changes only with what it tells.
  node_api::Forecast ForecastOf(const NodeRecord& record, const CloudStanding& cloud,
                                absl::Time now) const;

  // Ends the program when an address is held twice, or a count is not what counting gives. Slow:
  // for tests and audits.
  void CheckInvariants() const;

 private:
  struct GroupState {
    const PoolGroup* group;
    uint32_t target;
    AddressCounts counts;
    uint32_t waiting = 0;  // Pods that it is meant for, and that have no address yet.
  };
  // The demand is neither stored nor part of the record: it holds for one session of the agent,
  // which says all of it again in the next, so a server that starts anew has nothing to remember.
  // Kept, it would go on asking for pods that gave up while the agent was away.
  struct StatedDemand {
    node_api::Demand said;
    // The pods of these that were served since. Their addresses are used now; until the agent has
    // said so they must not count a second time, or each burst would be asked for twice.
    std::map<std::string, uint32_t> served = {};
    absl::Time served_at = {};
  };

  // Whether a view says what each node holds, for which its addresses are gone through. Without it
  // the view is enough for ReservationBook::OnPoolsChanged().
  enum class Holdings { kCounted, kLeftOut };
  CapacityView Capacity(const std::vector<std::string>& nodes,
                        Holdings holdings = Holdings::kCounted) const;
  std::vector<std::string> NodesWithPromises() const;
  NodeRoom RoomOf(const std::vector<PoolGroup>& groups, const NodeRecord* record) const;
  uint64_t FreeFor(const NodeRecord& record, size_t pool) const;
  void ClaimReserved(const NodeRecord& record, Effects& effects);
  void Prolong(const ip::Address& address, absl::Time until, Effects& effects);
  void EndQuarantines(Effects& effects, absl::Time now);
  const std::string& NoteHeard(const NodeRecord& holder, const ip::Address& address,
                               const std::string& mac, absl::Time until);
  bool NoteClaim(const NodeKey& claimant, const NodeRecord& holder, const ip::Address& address,
                 std::string_view claim);
  void EndClaim(const NodeKey& claimant, const ip::Address& address);
  void EndClaimsOf(const std::string& node);
  void EndDoubled(absl::Time now);
  void EndAssignmentsOf(NodeRecord& record, const node_api::Hello& hello, Effects& effects,
                        absl::Time now);
  void KeepRecordOf(const node_api::Hello& hello, Effects& effects);
  absl::Status CheckPredecessors(const node_api::Hello& hello) const;
  void TakeInstance(NodeRecord& record, const node_api::Hello& hello, Effects& effects);
  absl::StatusOr<NodeRecord*> PresentNode(const std::string& name);
  absl::StatusOr<const NodeRecord*> HolderToAsk(const ip::Address& address,
                                                const std::string& node) const;
  absl::StatusOr<NodeRecord*> RecordToForget(const Farewell& farewell);
  void TakePlace(NodeRecord& record, const node_api::Hello& hello);
  void RetireOthers(const NodeKey& key, Effects& effects);
  void TakeAssignment(NodeRecord& record, const node_api::Assignment& assignment, Effects& effects);
  void RecordAssignment(NodeRecord& record, Configuration& configuration,
                        const node_api::Assignment& assignment, Effects& effects);
  bool Adopt(NodeRecord& record, const node_api::Assignment& assignment, Effects& effects);
  std::string WhyNotAdopted(const NodeRecord& record, const PoolEntry& entry) const;
  bool MayQuarantine(const NodeRecord& record, const ip::Address& address) const;
  struct UseChange {
    Use use;
    const node_api::Assignment* assignment;  // Set exactly when assigned.
    absl::Time at;
  };
  void SetUse(NodeRecord& record, Configuration& configuration, const ip::Address& address,
              const UseChange& change, Effects& effects);
  void SetState(Configuration& configuration, AddressState state, absl::Time now);
  void Want(NodeRecord& record, size_t pool, Effects& effects, absl::Time now);
  std::string NextName(NodeRecord& record) const;
  void StopWanting(NodeRecord& record, const std::string& name);
  void StopWantingAll(NodeRecord& record, Effects& effects);
  void Attached(NodeRecord& record, Configuration& configuration, Effects& effects, absl::Time now);
  bool IsDisproved(const NodeRecord& record, const Configuration& configuration, Effects& effects,
                   absl::Time now);
  void TakeUnknown(NodeRecord& record, const std::vector<IpConfiguration>& on_nic, Effects& effects,
                   absl::Time now);
  void KeepUnusable(NodeRecord& record, const IpConfiguration& entry, std::string problem,
                    Effects& effects, absl::Time now);
  void TakeGiven(NodeRecord& record, const IpConfiguration& entry, Effects& effects,
                 absl::Time now);
  std::string WhyUnusable(const NodeRecord& record, const ip::Prefix& range, absl::Time now);
  void Settle(NodeRecord& record, Effects& effects, absl::Time now);
  void SettleSome(Effects& effects, absl::Time now);
  absl::Status CheckNotHeld() const;
  void TakeOver(NodeRecord& record, const ip::Prefix& unit, Effects& effects, absl::Time now);
  void MissFromNic(const NodeRecord& record, const Configuration& configuration, Effects& effects,
                   absl::Time now);
  void Assign(NodeRecord& record, size_t pool, const ip::Prefix& range, Effects& effects,
              absl::Time now);
  void Free(NodeRecord& record, const ip::Address& base, Effects& effects, absl::Time now);
  void FreeAll(NodeRecord& record, Effects& effects, absl::Time now);
  void FreeGone(NodeRecord& record, Effects& effects, absl::Time now);
  bool IsSucceeded(const NodeRecord& record) const;
  void Count(const Configuration& configuration, bool add);
  void CountWanted(const WantedEntry& wanted, bool add);
  std::string ProblemOf(const NodeRecord& record) const;
  std::vector<GroupState> GroupStatesOf(const NodeRecord& record) const;
  void AddWaiting(const NodeRecord& record, std::vector<GroupState>& states) const;
  void ServeWaiting(const NodeKey& key, const std::vector<const node_api::Assignment*>& in_use,
                    absl::Time now);
  void ForgetServed(Effects& effects, absl::Time now);
  std::string StandingOf(const NodeRecord& record, const GroupState& state,
                         const CloudStanding& cloud) const;
  std::string PoolsIn(const GroupState& state) const;
  std::string WhyNotGrown(const NodeRecord& record, const GroupState& state) const;
  void Grow(NodeRecord& record, const GroupState& state, Effects& effects, absl::Time now);
  void Shrink(NodeRecord& record, double jitter, Effects& effects, absl::Time now);
  bool MayFree(uint64_t would_free, const NodeKey& node, Effects& effects, absl::Time now);
  absl::Status CheckFits(const AddressPool& pool, const PoolSpec* spec) const;
  void FillPool(size_t index, bool is_new);
  size_t PoolIndexOf(const std::string& name) const;
  PoolEntry* PoolEntryOf(const ip::Address& address);

  FleetPolicy policy_;
  std::vector<PoolEntry> pools_;
  absl::flat_hash_map<std::string, size_t> pool_index_;  // Keyed by name.
  std::map<NodeKey, NodeRecord> nodes_;
  std::map<NodeKey, StatedDemand> demands_;  // The nodes where pods wait.
  std::map<ip::Address, Quarantine> quarantine_;
  std::set<std::pair<absl::Time, ip::Address>> quarantine_ends_;  // The ends of those that end.
  std::map<ip::Address, DoubledAddress> doubled_;
  ReservationBook reservations_;
  MassReleaseBreaker breaker_;
  std::set<ip::Prefix> judged_;  // Allowed by the breaker, asked for, and not answered.
  std::map<std::string, std::set<ip::Address>> refused_claims_;  // Keyed by node; in quarantine.
  bool held_ = false;
  std::set<ip::Prefix> doubtful_;  // While held: their node does not have them.
  std::set<NodeKey> greet_anew_;   // While held: the assignments they report were not taken.
  std::set<NodeKey> proved_;       // Nodes whose certificates name the instance; since the start.
  std::map<ip::Prefix, NodeKey> claims_;  // While held: it has them, and so has another here.
  std::set<NodeKey> conflicts_refused_;   // Nodes that reported more conflicts than are believed.
  std::set<NodeKey> missing_;             // Nodes that the last listing lacks.
  std::set<NodeKey> forgettable_;         // Nodes that hold nothing and wait for cooldowns only.
  std::set<NodeKey> unsettled_;           // Nodes that were given what they cannot use (yet).
  NodeKey settled_;                       // The one of them that was looked at last.
  // An address that is attached, but was not on the NIC when it was looked at.
  struct OffNic {
    absl::Time since;
    bool reported = false;
    absl::Time asked_until = absl::InfinitePast();  // Its agent was asked to give it up.
  };
  std::map<ip::Address, OffNic> off_nic_;
  absl::flat_hash_map<std::string, NodeKey> on_instance_;
  struct Place {
    std::map<std::string, std::string> labels;
    std::string vnet;
    std::vector<ip::Prefix> subnets;

    auto operator<=>(const Place&) const = default;
  };
  mutable std::map<Place, std::vector<PoolGroup>> groups_;
};

}  // namespace spoke::ipam
