// What operators want.
#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "ipam-server/core/fleet.h"
#include "lib/base/check.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

absl::Status NoPoolFor(const ip::Address& address) {
  return absl::NotFoundError(
      fmt::format("{} is in none of the pools; see: spokectl pool list", address.ToString()));
}

}  // namespace

absl::StatusOr<NodeRecord*> Fleet::PresentNode(const std::string& name) {
  const NodeRecord* found = FindByName(name);
  if (found != nullptr) return &nodes_.at(found->key);
  const auto any = nodes_.lower_bound({name, ""});
  if (any != nodes_.end() && any->first.name == name) {
    return absl::FailedPreconditionError(fmt::format(
        "node {} is retired: its VM {} was replaced or is gone", name, any->first.vm_id));
  }
  return absl::NotFoundError(fmt::format("there is no node {}; see: spokectl node list", name));
}

absl::StatusOr<Effects> Fleet::Retry(const std::string& node) {
  RETURN_IF_ERROR(CheckNotHeld());
  ASSIGN_OR_RETURN(const NodeRecord* const record, PresentNode(node));
  Effects effects;
  effects.attach.insert(record->key);
  effects.retry.insert(record->key);
  return effects;
}

absl::StatusOr<Effects> Fleet::SetMode(const std::string& name, NodeMode mode, absl::Time now) {
  ASSIGN_OR_RETURN(NodeRecord* const found, PresentNode(name));
  NodeRecord& record = *found;
  Effects effects;
  if (record.mode == mode) return effects;
  record.mode = mode;
  effects.changed.insert(record.key);
  effects.Merge(Review(record.key, 0, now));
  return effects;
}

absl::StatusOr<const NodeRecord*> Fleet::HolderToAsk(const ip::Address& address,
                                                     const std::string& node) const {
  RETURN_IF_ERROR(CheckNotHeld());
  const AddressPool* pool = PoolOf(address);
  if (pool == nullptr) return NoPoolFor(address);
  const NodeRecord* record = pool->OwnerOf(address);
  if (record == nullptr) {
    return absl::NotFoundError(fmt::format("no node holds {}", address.ToString()));
  }
  if (!node.empty() && record->key.name != node) {
    return absl::FailedPreconditionError(fmt::format("{} is held by node {}, not by {}",
                                                     address.ToString(), record->key.name, node));
  }
  return record;
}

absl::StatusOr<Effects> Fleet::ForceRelease(const ip::Address& address, const std::string& node,
                                            const std::string& reason) {
  if (reason.empty()) {
    return absl::InvalidArgumentError("say why, for whoever reads the log later");
  }
  ASSIGN_OR_RETURN(const NodeRecord* const record, HolderToAsk(address, node));
  const Slot& slot = record->Holding(address)->At(address);
  if (slot.lessee == nullptr) {
    return absl::FailedPreconditionError(
        fmt::format("{} on node {} is {}: no pod's use of it is to be ended", address.ToString(),
                    record->key.name, NameOf(record->Holding(address)->state, slot.use)));
  }
  Effects effects;
  effects.end_lendings[record->key].push_back(
      {.address = address, .generation = slot.generation, .reason = reason});
  effects.findings.push_back({Finding::Kind::kForced, record->key, address,
                              fmt::format("lent to pod {}/{}: {}", slot.lessee->pod_namespace,
                                          slot.lessee->pod_name, reason)});
  return effects;
}

absl::StatusOr<Effects> Fleet::Release(const ip::Address& address, const std::string& node) {
  ASSIGN_OR_RETURN(const NodeRecord* const record, HolderToAsk(address, node));
  const Configuration& configuration = *record->Holding(address);
  if (configuration.state != LeaseState::kAttached || !configuration.IsIdle()) {
    const Slot& slot = configuration.At(address);
    std::string detail;
    if (slot.lessee != nullptr) {
      detail = fmt::format(
          " to pod {}/{}: delete the pod first; if there is none, end its use with --force",
          slot.lessee->pod_namespace, slot.lessee->pod_name);
    }
    return absl::FailedPreconditionError(
        fmt::format("{} on node {} is {}{}{}", address.ToString(), record->key.name,
                    NameOf(configuration.state, slot.use), detail,
                    configuration.slots.size() > 1 ? " (only a whole idle block can go)" : ""));
  }
  Effects effects;
  effects.reclaim[record->key].push_back(configuration.range);
  return effects;
}

absl::StatusOr<Effects> Fleet::SetQuarantine(const ip::Address& address,
                                             std::optional<Quarantine> quarantine, absl::Time now) {
  PoolEntry* entry = PoolEntryOf(address);
  if (entry == nullptr) return NoPoolFor(address);
  const bool is = quarantine_.contains(address);
  if (is && quarantine && !quarantine_.at(address).until) {
    return absl::AlreadyExistsError(fmt::format(
        "{} is in quarantine already: {}", address.ToString(), quarantine_.at(address).reason));
  }
  if (!is && !quarantine) {
    return absl::FailedPreconditionError(
        fmt::format("{} is not in quarantine", address.ToString()));
  }
  const ip::Prefix unit = *entry->pool.UnitOf(address);
  Effects effects;
  effects.quarantined.insert(address);
  const NodeRecord* record = entry->pool.OwnerOf(address);
  effects.history.push_back(EntryOf(quarantine ? HistoryEvent::kQuarantined : HistoryEvent::kLifted,
                                    record == nullptr ? NodeKey() : record->key, address, now));
  if (is && quarantine_.at(address).until) {
    quarantine_ends_.erase({*quarantine_.at(address).until, address});
  }
  if (quarantine) {
    if (quarantine->until) quarantine_ends_.emplace(*quarantine->until, address);
    quarantine_[address] = *std::move(quarantine);
    entry->pool.SetQuarantined(unit, true);
    if (record != nullptr && record->Holding(address)->IsIdle()) {
      effects.reclaim[record->key].push_back(unit);
    }
  } else {
    quarantine_.erase(address);
    const bool others = std::any_of(quarantine_.begin(), quarantine_.end(),
                                    [&](const auto& other) { return unit.Contains(other.first); });
    if (!others) entry->pool.SetQuarantined(unit, false);
  }
  return effects;
}

absl::Status Fleet::SetPools(const std::vector<PoolSpec>& specs) {
  std::vector<PoolEntry> pools;
  absl::flat_hash_map<std::string, size_t> index;
  for (const PoolSpec& spec : specs) {
    index.emplace(spec.name, pools.size());
    pools.push_back({AddressPool(spec), {}});
  }
  // Everything is looked at first, so that a refusal changes nothing.
  for (const auto& [key, record] : nodes_) {
    for (const auto& [base, configuration] : record.configurations) {
      const auto it = index.find(configuration.pool);
      if (it != index.end() && pools[it->second].pool.Owns(configuration.range)) continue;
      return absl::FailedPreconditionError(fmt::format(
          "pool {}: {} is on node {} and would be outside; drain the nodes that use it first (see: "
          "spokectl ip list --pool {})",
          configuration.pool, configuration.range.ToString(), key.name, configuration.pool));
    }
  }
  for (auto& [key, record] : nodes_) {
    for (const auto& [base, configuration] : record.configurations) {
      PoolEntry& entry = pools[index.at(configuration.pool)];
      CHECK(entry.pool.Hold(configuration.range, &record), "no unit was held twice before");
      entry.counts.Add(configuration);
    }
  }
  pools_ = std::move(pools);
  pool_index_ = std::move(index);
  groups_.clear();
  for (const auto& [key, record] : nodes_) {
    for (const auto& [name, wanted] : record.wanted) CountWanted(wanted, true);
  }
  for (const auto& [address, quarantine] : quarantine_) {
    if (PoolEntry* entry = PoolEntryOf(address); entry != nullptr) {
      entry->pool.SetQuarantined(*entry->pool.UnitOf(address), true);
    }
  }
  std::vector<std::pair<absl::Time, ip::Prefix>> released;
  for (const auto& [key, record] : nodes_) {
    for (const auto& [range, at] : record.released) released.emplace_back(at, range);
  }
  std::sort(released.begin(), released.end());
  for (const auto& [at, range] : released) {
    PoolEntry* entry = PoolEntryOf(range.base());
    if (entry != nullptr) entry->pool.Cool(range, at + policy_.cooldown);
  }
  reservations_.OnPoolsChanged(Capacity(NodesWithPromises()));
  return absl::OkStatus();
}

Effects Fleet::TakeLending(const NodeKey& key, const Lending& lending, absl::Time now) {
  Effects effects;
  const auto node = nodes_.find(key);
  if (node == nodes_.end()) return effects;
  TakeLending(node->second, lending, effects);
  effects.changed.insert(key);
  effects.Merge(Plan(key, now));
  return effects;
}

Effects Fleet::EndLending(const NodeKey& key, const ip::Address& address, uint64_t generation,
                          absl::Time now) {
  return OnReport(key, {.released = {{.address = address, .generation = generation}}}, now);
}

Effects Fleet::Unfreeze(absl::Time now) {
  Effects effects;
  effects.breaker = breaker_.Unfreeze(now).has_value();
  return effects;
}

}  // namespace spoke::ipam
