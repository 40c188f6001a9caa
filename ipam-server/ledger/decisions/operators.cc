#include "ipam-server/ledger/decisions/operators.h"

#include <algorithm>

#include "fmt/core.h"
#include "ipam-server/ledger/decisions/holdings.h"
#include "ipam-server/ledger/decisions/inventory.h"
#include "ipam-server/ledger/decisions/listing.h"
#include "ipam-server/ledger/decisions/plan.h"
#include "ipam-server/ledger/promises.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

absl::StatusOr<NodeRecord*> PresentNode(Fleet& fleet, const std::string& name) {
  const NodeRecord* found = FindByName(fleet.ledger, name);
  if (found != nullptr) return fleet.ledger.Find(found->key);
  const auto any = fleet.ledger.nodes().lower_bound({name, ""});
  if (any != fleet.ledger.nodes().end() && any->first.name == name) {
    return absl::FailedPreconditionError(fmt::format(
        "node {} is retired: its VM {} was replaced or is gone", name, any->first.vm_id));
  }
  return absl::NotFoundError(fmt::format("there is no node {}; see: spokectl node list", name));
}

absl::StatusOr<NodeRecord*> RecordToForget(Fleet& fleet, const Farewell& farewell) {
  std::vector<NodeKey> found;
  std::string ids;
  const auto& nodes = fleet.ledger.nodes();
  for (auto it = nodes.lower_bound({farewell.node, ""});
       it != nodes.end() && it->first.name == farewell.node; ++it) {
    if (!farewell.vm_id.empty() && it->first.vm_id != farewell.vm_id) continue;
    found.push_back(it->first);
    ids += (ids.empty() ? "" : ", ") + it->first.vm_id;
  }
  if (found.empty()) {
    return absl::NotFoundError(
        farewell.vm_id.empty()
            ? fmt::format("there is no node {}", farewell.node)
            : fmt::format("there is no node {} with VM id {}", farewell.node, farewell.vm_id));
  }
  if (found.size() > 1) {
    return absl::InvalidArgumentError(
        fmt::format("there are {} machines under the name {}: say which with --vm ({})",
                    found.size(), farewell.node, ids));
  }
  return fleet.ledger.Find(found.front());
}

absl::StatusOr<const NodeRecord*> HolderToAsk(const Fleet& fleet, const ip::Address& address,
                                              const std::string& node) {
  RETURN_IF_ERROR(CheckNotHeld(fleet));
  const PoolEntry* entry = fleet.ledger.pools().Covering(address);
  if (entry == nullptr) {
    return absl::NotFoundError(
        fmt::format("{} is in none of the pools; see: spokectl pool list", address.ToString()));
  }
  const NodeRecord* record = entry->pool.OwnerOf(address);
  if (record == nullptr) {
    return absl::NotFoundError(fmt::format("no node holds {}", address.ToString()));
  }
  if (!node.empty() && record->key.name != node) {
    return absl::FailedPreconditionError(fmt::format("{} is held by node {}, not by {}",
                                                     address.ToString(), record->key.name, node));
  }
  return record;
}

}  // namespace

absl::StatusOr<Effects> SetMode(Fleet& fleet, const std::string& name, NodeMode mode,
                                absl::Time now) {
  ASSIGN_OR_RETURN(NodeRecord* const found, PresentNode(fleet, name));
  NodeRecord& record = *found;
  Effects effects;
  if (record.mode == mode) return effects;
  record.mode = mode;
  effects.changed.insert(record.key);
  effects.Merge(ReviewNode(fleet, record.key, {}, now));
  return effects;
}

absl::StatusOr<Effects> Retry(Fleet& fleet, const std::string& node) {
  RETURN_IF_ERROR(CheckNotHeld(fleet));
  ASSIGN_OR_RETURN(const NodeRecord* const record, PresentNode(fleet, node));
  Effects effects;
  effects.attach.insert(record->key);
  effects.retry.insert(record->key);
  return effects;
}

absl::StatusOr<Forgotten> Forget(Fleet& fleet, const Farewell& farewell, absl::Time now) {
  RETURN_IF_ERROR(CheckNotHeld(fleet));
  ASSIGN_OR_RETURN(NodeRecord* const record, RecordToForget(fleet, farewell));
  const auto silent = farewell.silent.find(record->key);
  if (silent == farewell.silent.end() || silent->second != record->session_epoch) {
    return absl::FailedPreconditionError(
        fmt::format("the agent of node {} (VM {}) is connected: a machine that speaks is not gone. "
                    "To take a node out of use: spokectl node drain {}",
                    record->key.name, record->key.vm_id, record->key.name));
  }
  const bool listed = fleet.policy.cloud_chooses && !record->instance.empty() &&
                      HasItsInstance(fleet.ledger, *record) && !fleet.missing.contains(record->key);
  if (listed) {
    return absl::FailedPreconditionError(
        fmt::format("the cloud has not said that {} is gone: delete the VM first, and wait for its "
                    "next listing",
                    record->instance));
  }
  const AddressCounts counts = CountAddresses(*record);
  if (counts.in_use != farewell.in_use) {
    return absl::FailedPreconditionError(fmt::format(
        "pods of node {} (VM {}) used {} addresses when its agent last spoke, not {}: if the "
        "machine has really stopped, say so with --in-use {}; where it still runs, its addresses "
        "will be in two places",
        record->key.name, record->key.vm_id, counts.in_use, farewell.in_use, counts.in_use));
  }
  Forgotten forgotten{.node = record->key, .addresses = counts.total(), .effects = {}};
  FreeGone(fleet, *record, forgotten.effects, now);
  return forgotten;
}

absl::StatusOr<Effects> Release(const Fleet& fleet, const ip::Address& address,
                                const std::string& node) {
  ASSIGN_OR_RETURN(const NodeRecord* const record, HolderToAsk(fleet, address, node));
  const Configuration& configuration = *record->Holding(address);
  if (configuration.state != AddressState::kAttached || !configuration.IsAvailable()) {
    const Slot& slot = configuration.At(address);
    std::string detail;
    if (slot.lessee != nullptr) {
      detail = fmt::format(
          " to pod {}/{}: delete the pod first; if there is none, end its use with --force",
          slot.lessee->pod_namespace, slot.lessee->pod_name);
    }
    return absl::FailedPreconditionError(fmt::format(
        "{} on node {} is {}{}{}", address.ToString(), record->key.name,
        NameOf(configuration.state, slot.use), detail,
        configuration.slots.size() > 1 ? " (only a whole available block can go)" : ""));
  }
  Effects effects;
  effects.reclaim[record->key].push_back(configuration.range);
  return effects;
}

absl::StatusOr<Effects> ForceRelease(const Fleet& fleet, const ip::Address& address,
                                     const std::string& node, const std::string& reason) {
  if (reason.empty()) {
    return absl::InvalidArgumentError("say why, for whoever reads the log later");
  }
  ASSIGN_OR_RETURN(const NodeRecord* const record, HolderToAsk(fleet, address, node));
  const Slot& slot = record->Holding(address)->At(address);
  if (slot.lessee == nullptr) {
    return absl::FailedPreconditionError(
        fmt::format("{} on node {} is {}: no pod's use of it is to be ended", address.ToString(),
                    record->key.name, NameOf(record->Holding(address)->state, slot.use)));
  }
  Effects effects;
  effects.end_assignments[record->key].push_back(
      {.address = address, .generation = slot.generation, .reason = reason});
  effects.findings.push_back({Finding::Kind::kForced, record->key, address,
                              fmt::format("assigned to pod {}/{}: {}", slot.lessee->pod_namespace,
                                          slot.lessee->pod_name, reason)});
  return effects;
}

absl::StatusOr<Effects> SetPools(Fleet& fleet, const std::vector<PoolSpec>& specs, absl::Time now) {
  const PoolSet& pools = fleet.ledger.pools();
  const bool same = std::equal(
      specs.begin(), specs.end(), pools.begin(), pools.end(),
      [](const PoolSpec& spec, const PoolEntry& entry) { return spec == entry.pool.spec(); });
  Effects effects;
  if (same) return effects;
  RETURN_IF_ERROR(fleet.ledger.SetPools(specs));
  AdoptUsed(fleet, effects, now);
  for (const auto& [key, record] : fleet.ledger.nodes()) effects.desired.insert(key);
  // Whoever has all that was promised to it draws from no pool, until more is.
  std::vector<std::string> owed;
  for (const auto& [name, reservation] : fleet.reservations.all()) {
    for (const auto& [node, missing] : reservation.missing) {
      const bool some = std::any_of(missing.begin(), missing.end(),
                                    [](const auto& entry) { return entry.second > 0; });
      if (some) owed.push_back(node);
    }
  }
  fleet.reservations.OnPoolsChanged(CapacityOf(fleet, owed, Holdings::kLeftOut));
  return effects;
}

Effects LiftFreeze(Fleet& fleet, absl::Time now) {
  Effects effects;
  effects.breaker = fleet.breaker.Unfreeze(now).has_value();
  return effects;
}

}  // namespace spoke::ipam
