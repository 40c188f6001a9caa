// All nodes and pools: what each message changes, and what must follow. Pure: the loop that owns it
// stores the records it names before it carries out the rest.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "ipam-server/core/address_pool.h"
#include "ipam-server/core/node_record.h"
#include "ipam-server/core/pool_plan.h"

namespace spoke::ipam {

// Something an operator should read: an agent and the store disagree.
struct Finding {
  enum class Kind {
    kAdopted,        // Lent by its agent, unknown here, free: taken over as attached.
    kHeldElsewhere,  // Lent by this agent, but held by another node: two pods may share it.
    kForeign,        // Lent by this agent, but in none of our pools.
  };
  Kind kind;
  NodeKey node;
  ip::Address address;
  std::string detail;

  bool operator==(const Finding&) const = default;
};

// What follows from an event.
struct Effects {
  std::set<NodeKey> changed;  // Records to store before anything else is done or said.
  std::set<NodeKey> attach;   // Nodes whose NIC the cloud must be asked to change.
  std::set<NodeKey> desired;  // Nodes whose attached addresses are other than before.
  std::vector<Finding> findings;

  void Merge(Effects other);
};

struct FleetPolicy {
  TargetPolicy target;
  absl::Duration cooldown = absl::Seconds(30);
};

// Not thread-safe; one loop owns it.
class Fleet {
 public:
  Fleet(const std::vector<PoolSpec>& pools, const FleetPolicy& policy);

  // Takes a stored record over, at start. Errors: kFailedPrecondition when an address is held twice
  // or lies in no pool: the message says which, and what to do.
  absl::Status Load(NodeRecord record);

  // An agent opened a session. The record's session_epoch is raised, a new boot ends the lendings
  // of the old one, and the node is brought towards its target.
  Effects OnHello(const Hello& hello, absl::Time now);

  // Stale parts of a report (an older generation, an address the node does not hold) change
  // nothing.
  Effects OnReport(const NodeKey& key, const LendingReport& report, absl::Time now);

  // The cloud has put `addresses` on the node's NIC.
  Effects OnAttached(const NodeKey& key, const std::vector<ip::Address>& addresses, absl::Time now);

  // Assigns what the node lacks to its target. Called by the two above; safe at any time.
  Effects Plan(const NodeKey& key, absl::Time now);

  const NodeRecord* Find(const NodeKey& key) const;
  const std::map<NodeKey, NodeRecord>& nodes() const { return nodes_; }
  const std::vector<AddressPool>& pools() const { return pools_; }
  const FleetPolicy& policy() const { return policy_; }

  // The node that holds `address`, or nullptr.
  const NodeRecord* HolderOf(const ip::Address& address) const;
  const AddressPool* PoolOf(const ip::Address& address) const;

  // How many addresses the node should hold, over all families for which there is a pool.
  uint32_t TargetOf(const NodeRecord& record) const;

  // Empty, or why the node has fewer addresses than its target, in words.
  std::string ShortageOf(const NodeRecord& record) const;

 private:
  void EndLendingsOf(NodeRecord& record, const Hello& hello, absl::Time now);
  void TakeLending(NodeRecord& record, const Lending& lending, Effects& effects);
  bool Adopt(NodeRecord& record, const Lending& lending, Effects& effects);
  bool HasPoolFor(ip::Family family) const;
  std::optional<std::pair<ip::Address, std::string>> TakeFromPools(ip::Family family);

  FleetPolicy policy_;
  std::vector<AddressPool> pools_;
  std::map<NodeKey, NodeRecord> nodes_;
  std::map<ip::Address, NodeKey> holders_;
};

}  // namespace spoke::ipam
