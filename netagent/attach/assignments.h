// Keeps which container uses which attached address: the truth about it for this node. Pure: no
// I/O, no clock, no locks.
//
// Every change is an Event that is journalled before it is applied, so that replaying the journal
// gives the same state. Plan*() decide, Apply() changes.
//
// Giving addresses up. The server detaches an address only after the agent has agreed, and then the
// fabric may hand it to another node: so what is withdrawn must not be assigned. A withdrawal ends
// in one of two ways, and a restart is neither:
//
//   - the address leaves the server's list, because the agreement has been acted upon;
//   - the server lists it anew in a later session, because the agreement was lost on the way. A
//     server takes an agreement only from the session in which it was given, so the list that a
//     session begins with already shows all earlier agreements it will ever act upon.
//
// A list of the same session says nothing: it may have been sent before the agreement arrived.
// attach/attachments.h knows the sessions and records the end (WithdrawnSet).
//
// Proof. Where its family requires it, an address is not assigned before it has been proven to work
// (verification/address_verification.h); one that a pod has had counts as proven. An address that
// leaves the list or is withdrawn has to be proven anew.
//
// Clearing. Where it is required, a cooldown ends only after the kernel's tracked connections of
// the address have been deleted (connections/connection_passes.h), however long that takes: an
// address in cooldown is uncleared until SetCleared(). This is not journalled: after a restart all
// addresses in cooldown are uncleared again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/cni_api/pod_options.h"
#include "lib/ip/address.h"
#include "lib/ip/prefix.h"
#include "lib/netns/trace.h"
#include "lib/node_api/assignments.h"
#include "netagent/links/attach_plan.h"

namespace spoke::netagent {

// The request of an ADD and, once PlanAssignment() has completed it, what its pod has.
struct Assignment {
  AttachmentKey key;
  cni::PodReference pod = {};
  // A request has at most one a family: exactly this one, or none of that family.
  std::vector<ip::Address> addresses = {};
  uint64_t generation = 0;  // Rises with each assignment of this node.
  absl::Time since = {};
  // The number of the plugin's exec: the same ADD, asked again because its answer was lost, has the
  // same one. 0: not said.
  uint64_t attempt = 0;
  std::string netns_path = {};  // Leads to the pod's namespace; empty: not known.
  std::string network = {};     // CNI's network name, for GC.
  AttachOptions options = {};   // PlanAssignment() chooses the ordinal.
  netns::Trace netns_trace = {};

  bool operator==(const Assignment&) const = default;
};

// Adds what the server is told of the assignment, one entry for each address, since the server
// keeps each address by itself. Only this node needs the rest of it (the namespace, the options).
void AddEntries(const Assignment& assignment, std::vector<node_api::Assignment>& entries);

// The families whose addresses have to be proven before they are first assigned.
struct ProofRequired {
  bool ipv4 = false;
  bool ipv6 = false;
};

// An attached address that the server has given this node.
struct Holding {
  ip::Address address;
  std::string pool;
  std::optional<ip::MacAddress> nic = std::nullopt;  // Which NIC it is on; nullopt: unknown.

  bool operator==(const Holding&) const = default;
};

// A pool that the node draws from.
struct PoolRule {
  std::string pool;
  std::string cidr;                     // Says the family while no address of it is here.
  std::vector<std::string> namespaces;  // Those whose pods it is for; none: all others.

  bool operator==(const PoolRule&) const = default;
};

// The server's list replaces the one before. What is assigned stays until its pod is gone, listed
// or not. An address that leaves the list is neither withdrawn nor in conflict any more: should it
// come back, it has been listed anew.
struct HoldingsReplaced {
  std::vector<Holding> holdings;
  std::vector<PoolRule> rules = {};  // The rules go with the list, in one event.
};
// The kernel work for the assignment begins.
struct AssignmentBegun {
  Assignment assignment;
};
// The kernel work is done: the pod has its addresses.
struct AssignmentBuilt {
  AttachmentKey key;
};
// The assignment is over. `unused`: no pod ever had it, so its addresses need no cooldown.
struct AssignmentReleased {
  AttachmentKey key;
  absl::Time at;
  bool unused = false;
};
// The address is in cooldown: it must not be assigned before `until`.
struct CooldownSet {
  ip::Address address;
  absl::Time until;
};
// The agent has agreed to give these up, or (`withdrawn` false) the server has listed them anew.
struct WithdrawnSet {
  std::vector<ip::Address> addresses;
  bool withdrawn = true;
};
// Another machine answers for the address: it is not assigned until it has left the list.
struct ConflictNoted {
  ip::Address address;
  std::optional<ip::MacAddress> other_mac;  // nullopt: unknown.

  bool operator==(const ConflictNoted&) const = default;
};
// No other machine answers for the address any more: it is as good as any other.
struct ConflictOver {
  ip::Address address;
};
// The addresses that have been proven to work.
struct AddressesProven {
  std::vector<ip::Address> addresses;
};
using Event = std::variant<HoldingsReplaced, AssignmentBegun, AssignmentBuilt, AssignmentReleased,
                           CooldownSet, WithdrawnSet, ConflictNoted, AddressesProven, ConflictOver>;

// The number of addresses in each use.
struct UseCounts {
  uint32_t available = 0;
  uint32_t in_use = 0;
  uint32_t cooldown = 0;
  // The three below count addresses that would be available otherwise.
  uint32_t unusable = 0;  // Withdrawn, in conflict, or on a NIC without a way out.
  uint32_t on_nic = 0;    // On the node's device, so that the node would answer for them.
  uint32_t unproven = 0;  // Waiting for their proof.

  uint32_t attached() const { return available + in_use + cooldown + unusable + on_nic + unproven; }
  bool operator==(const UseCounts&) const = default;
};

// The answer to a request to give IP configurations up.
struct WithdrawPlan {
  std::vector<ip::Prefix> agreed;     // None of their addresses is assigned, begun or in cooldown.
  std::vector<ip::Prefix> denied;     // The others.
  std::vector<ip::Address> withdraw;  // What has to be withdrawn first of `agreed`.

  bool operator==(const WithdrawPlan&) const = default;
};

// Not thread-safe; the agent's one loop owns it.
class Assignments {
 public:
  explicit Assignments(absl::Duration cooldown, ProofRequired proof_required = {},
                       bool clearing_required = false)
      : cooldown_(cooldown),
        proof_required_(proof_required),
        clearing_required_(clearing_required) {}

  // Chooses one address of each family that PoolsFor() has pools for: the one that is requested,
  // else the one that has been available the longest, among those that nobody is asked about as
  // long as there are any. The ordinal is the lowest that no other attachment of the container has.
  // Errors: kAlreadyExists (the key has an assignment); kResourceExhausted (none is available, or
  // the one that is requested is not: it may come; the message names the pools that were
  // considered); kPermissionDenied (this node has addresses, but all of pools that are meant for
  // others); kInvalidArgument (options that cannot be met: two addresses of one family, one that
  // this node does not have, or one of a pool that is meant for others).
  absl::StatusOr<Assignment> PlanAssignment(const Assignment& asked, absl::Time now) const;

  // The pools from which a pod of `pod_namespace` gets its address of `family`: those meant for its
  // namespace; if the node has none, those meant for no namespace; never those meant for others
  // only. A pool counts even while no address of it is here: the pod waits for its own rather than
  // take what is not meant for it, or do without an address of the family.
  std::set<std::string> PoolsFor(ip::Family family, const std::string& pod_namespace) const;

  // Decides which of `blocks` can be given up, each as a whole. Once `withdraw` is applied,
  // planning again agrees to the same and withdraws nothing. An address that is not here at all is
  // no obstacle: it cannot be assigned before the server lists it.
  WithdrawPlan PlanWithdraw(const std::vector<ip::Prefix>& blocks) const;

  // Applies an event; one that does not apply (a key that is not there) changes nothing.
  void Apply(const Event& event);

  // Sets which addresses are on the node's own device now: those are not assigned. This is an
  // observation and no event: it is made anew after a restart.
  void SetOnNic(std::set<ip::Address> addresses) { on_nic_ = std::move(addresses); }

  // Sets about which addresses the network is being asked whether another machine has them: those
  // are assigned only when there are no others. This is an observation too.
  void SetUnasked(std::set<ip::Address> addresses) { unasked_ = std::move(addresses); }

  // Sets by which NICs nothing can leave now: their addresses are not assigned, so that none of
  // them stands in the way of another NIC's. This is an observation too.
  void SetUnroutable(std::set<ip::MacAddress> nics) { unroutable_ = std::move(nics); }

  // Lets no cooldown end later than one that begins now: the clock by which the journal has its
  // ends may have been ahead. Call it at the end of a replay.
  void ClampCooldowns(absl::Time now);
  // Ends the cooldown of addresses whose time has come and that are not uncleared, and returns
  // them. Looks at them only once NextCooldownEnd() has come, since this is on the way of every
  // request.
  std::vector<ip::Address> EndCooldowns(absl::Time now);
  // When to call EndCooldowns() next: no cooldown ends before that, but the one that would have may
  // have ended otherwise. nullopt: nothing is in cooldown, or SetCleared() comes first.
  std::optional<absl::Time> NextCooldownEnd() const { return next_cooldown_end_; }

  // When the cooldown of `address` ends, at the earliest; nullopt: it is not in cooldown.
  std::optional<absl::Time> CooldownEnd(const ip::Address& address) const;

  // The addresses in cooldown whose connections the kernel may still track.
  const std::set<ip::Address>& Uncleared() const { return uncleared_; }
  // Notes that their connections have been deleted, after they were released. Passes over others.
  void SetCleared(const std::set<ip::Address>& addresses);

  const Assignment* Find(const AttachmentKey& key) const;
  bool IsBuilt(const AttachmentKey& key) const;
  // The assignments that are built, by key; Unfinished() has those that are only begun.
  std::vector<Assignment> Built() const;
  std::vector<Assignment> Unfinished() const;
  std::vector<ip::Address> Cooldown() const;
  // Every address this node may see traffic for: what the server has listed, and what is assigned.
  std::vector<ip::Address> Attached() const;
  // The part of Attached() that nobody else may have: neither what this node has agreed to give up,
  // which the server may have given to another node by now, nor what it took back and nobody uses.
  std::vector<ip::Address> Own() const;
  bool IsAssigned(const ip::Address& address) const;
  // The pool that the address is of; empty: not an address of this node.
  std::string PoolOf(const ip::Address& address) const;
  // Rises whenever Attached() changes: while it is the same, the addresses are too.
  uint64_t attached_version() const { return attached_version_; }
  // Rises whenever Own(), or the pool or NIC of one of them, may have changed.
  uint64_t own_version() const { return attached_version_ + own_changes_; }
  // The NIC that has the address; nullopt: unknown, or not an address of this node.
  std::optional<ip::MacAddress> NicOf(const ip::Address& address) const;
  std::map<std::string, UseCounts> CountByPool() const;
  // Whether some address is in use, or available as CountByPool() has it. Mostly the first that is
  // looked at is.
  bool HasUsable() const;
  std::vector<ip::Address> Withdrawn() const;
  std::vector<ConflictNoted> Conflicts() const;
  // The rules, by pool.
  std::vector<PoolRule> Rules() const;
  // The addresses that are listed and proven. (Unproven(): those that have yet to be before they
  // are assigned; none where no proof is required, and none that is withdrawn.)
  std::vector<ip::Address> Proven() const;
  std::vector<ip::Address> Unproven() const;

  // Events that lead from nothing to the present state: the compacted journal.
  std::vector<Event> Snapshot() const;

 private:
  using Use = node_api::Use;
  struct Held {
    std::string pool;
    std::optional<ip::MacAddress> nic = std::nullopt;
    Use use = Use::kAvailable;
    bool listed = false;    // False: the server has taken it back, and it goes when available.
    absl::Time cool_until;  // The end of its cooldown.
    uint64_t available_since = 0;  // The order in which addresses became available.
    bool withdrawn = false;
    std::optional<ConflictNoted> conflict = std::nullopt;
    bool proven = false;

    bool unusable() const { return withdrawn || conflict.has_value(); }
  };
  struct Rule {
    PoolRule rule;
    std::optional<ip::Family> family;  // nullopt: its CIDR cannot be read.
  };
  struct Entry {
    Assignment assignment;
    bool built = false;
  };

  void ApplyOne(const HoldingsReplaced& event);
  void ApplyOne(const AssignmentBegun& event);
  void ApplyOne(const AssignmentBuilt& event);
  void ApplyOne(const AssignmentReleased& event);
  void ApplyOne(const CooldownSet& event);
  void ApplyOne(const WithdrawnSet& event);
  void ApplyOne(const ConflictNoted& event);
  void ApplyOne(const AddressesProven& event);
  void ApplyOne(const ConflictOver& event);
  bool LacksProof(const ip::Address& address, const Held& held) const;
  bool IsUnroutable(const Held& held) const { return held.nic && unroutable_.contains(*held.nic); }
  // Returns the counter of an available address.
  uint32_t& AvailableCountOf(const ip::Address& address, const Held& held, UseCounts& counts) const;
  // Returns the address of `pools` and `family` to assign next, as PlanAssignment() says; nullptr:
  // none is available.
  const ip::Address* NextAvailable(ip::Family family, const std::set<std::string>& pools) const;
  bool IsAssignable(const ip::Address& address, const Held& held) const;
  // Errors: kResourceExhausted (no address is attached to the node).
  absl::Status CheckAny() const;
  // Checks whether `requested` can be assigned now to a pod that gets its addresses from `pools`.
  // Errors: those of PlanAssignment().
  absl::Status CheckOptions(const ip::Address& requested, const std::set<std::string>& pools) const;
  uint32_t FreeOrdinal(const std::string& container_id) const;
  using HeldIterator = std::map<ip::Address, Held>::iterator;
  // Adds the address, not listed, unless it is there; Drop() takes it off. All that adds or takes
  // off one address goes through these.
  HeldIterator Hold(const ip::Address& address);
  void Drop(HeldIterator it);
  void MakeAvailable(HeldIterator it);
  void StartCooldown(HeldIterator it, absl::Time until);

  absl::Duration cooldown_;
  ProofRequired proof_required_;
  bool clearing_required_;
  std::map<ip::Address, Held> held_;
  std::set<ip::Address> uncleared_;  // All of them are in cooldown.
  std::map<AttachmentKey, Entry> entries_;
  std::map<std::string, Rule> rules_;  // The rules by pool.
  std::set<ip::Address> on_nic_;
  std::set<ip::Address> unasked_;
  std::set<ip::MacAddress> unroutable_;
  uint64_t last_generation_ = 0;
  uint64_t available_counter_ = 0;
  uint64_t attached_version_ = 0;
  uint64_t own_changes_ = 0;                     // Those without a change of what is attached.
  std::optional<absl::Time> next_cooldown_end_;  // What NextCooldownEnd() returns.
};

}  // namespace spoke::netagent
