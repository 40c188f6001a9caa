// What follows from a decision: what is to be stored, and then done and said. Pure.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "ipam-server/history/history.h"
#include "ipam-server/ledger/node_record.h"
#include "lib/ip/address.h"
#include "lib/ip/prefix.h"
#include "lib/node_api/assignments.h"

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

// What follows from an event. Nothing of it may be said or done before the records are stored.
struct Effects {
  std::set<NodeKey> changed;           // Records to store; one that is gone is to be removed.
  std::set<ip::Address> quarantined;   // Quarantine entries to store or remove.
  std::set<std::string> reservations;  // Reservations to store or remove.
  bool breaker = false;                // Its state is to be stored.
  bool recovery = false;               // The recovery's state is to be stored.
  std::set<NodeKey> plan;              // Nodes to call PlanNode() for soon, some at a time.
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

}  // namespace spoke::ipam
