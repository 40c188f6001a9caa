// What operators want.
#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "ipam-server/ledger/fleet.h"
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
  effects.end_assignments[record->key].push_back(
      {.address = address, .generation = slot.generation, .reason = reason});
  effects.findings.push_back({Finding::Kind::kForced, record->key, address,
                              fmt::format("assigned to pod {}/{}: {}", slot.lessee->pod_namespace,
                                          slot.lessee->pod_name, reason)});
  return effects;
}

absl::StatusOr<Effects> Fleet::Release(const ip::Address& address, const std::string& node) {
  ASSIGN_OR_RETURN(const NodeRecord* const record, HolderToAsk(address, node));
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
    if (record != nullptr && record->Holding(address)->IsAvailable()) {
      effects.reclaim[record->key].push_back(unit);
    }
  } else {
    quarantine_.erase(address);
    const auto doubled = doubled_.find(address);
    if (doubled != doubled_.end() && !doubled->second.claimant) doubled_.erase(doubled);
    const bool others = std::any_of(quarantine_.begin(), quarantine_.end(),
                                    [&](const auto& other) { return unit.Contains(other.first); });
    if (!others) entry->pool.SetQuarantined(unit, false);
  }
  return effects;
}

absl::Status Fleet::SetPools(const std::vector<PoolSpec>& specs) {
  const bool same = std::equal(
      specs.begin(), specs.end(), pools_.begin(), pools_.end(),
      [](const PoolSpec& spec, const PoolEntry& entry) { return spec == entry.pool.spec(); });
  if (same) return absl::OkStatus();
  absl::flat_hash_map<std::string, size_t> index;
  for (size_t i = 0; i < specs.size(); ++i) index.emplace(specs[i].name, i);
  // Everything is looked at first, so that a refusal changes nothing.
  for (const PoolEntry& entry : pools_) {
    const auto next = index.find(entry.pool.spec().name);
    RETURN_IF_ERROR(CheckFits(entry.pool, next == index.end() ? nullptr : &specs[next->second]));
  }
  std::vector<PoolEntry> pools;
  pools.reserve(specs.size());  // A vector that grows copies its pools, with all their addresses.
  std::vector<size_t> other;    // Pools that are new, or cover something else than before.
  for (const PoolSpec& spec : specs) {
    const size_t before = PoolIndexOf(spec.name);
    if (before == pools_.size() || pools_[before].pool.spec().cidr != spec.cidr) {
      other.push_back(pools.size());
    }
    if (before == pools_.size()) {
      pools.push_back({AddressPool(spec), {}});
      continue;
    }
    pools.push_back(std::move(pools_[before]));
    if (pools.back().pool.spec() != spec) pools.back().pool.Respecify(spec);
  }
  const absl::flat_hash_map<std::string, size_t> former = std::exchange(pool_index_, index);
  pools_ = std::move(pools);
  groups_.clear();
  for (const size_t pool : other) {
    FillPool(pool, /*is_new=*/!former.contains(pools_[pool].pool.spec().name));
  }
  // Whoever has all that was promised to it draws from no pool, until more is.
  std::vector<std::string> owed;
  for (const auto& [name, reservation] : reservations_.all()) {
    for (const auto& [node, missing] : reservation.missing) {
      const bool some = std::any_of(missing.begin(), missing.end(),
                                    [](const auto& entry) { return entry.second > 0; });
      if (some) owed.push_back(node);
    }
  }
  reservations_.OnPoolsChanged(Capacity(owed, Holdings::kLeftOut));
  return absl::OkStatus();
}

// `spec`: what the pool is to become; nullptr: it is to go.
absl::Status Fleet::CheckFits(const AddressPool& pool, const PoolSpec* spec) const {
  const auto outside = pool.InUseOutside(spec);
  if (!outside) return absl::OkStatus();
  const std::string& name = pool.spec().name;
  const NodeRecord* holder = pool.OwnerOf(outside->base());
  if (holder == nullptr) {
    return absl::FailedPreconditionError(fmt::format(
        "pool {}: {} is in cooldown or in quarantine and would be outside; wait, or lift the "
        "quarantine (see: spokectl ip show {})",
        name, outside->ToString(), outside->base().ToString()));
  }
  return absl::FailedPreconditionError(fmt::format(
      "pool {}: {} is on node {} and would be outside; drain the nodes that use it first (see: "
      "spokectl ip list --pool {})",
      name, outside->ToString(), holder->key.name, name));
}

// What is known of addresses that were in no pool, or in another, before. None of them is held.
void Fleet::FillPool(size_t index, bool is_new) {
  AddressPool& pool = pools_[index].pool;
  const auto is_free = [&](const ip::Address& address) {
    return pool.StateOf(address) == AddressPool::State::kFree;
  };
  for (const auto& [address, quarantine] : quarantine_) {
    if (is_free(address)) pool.SetQuarantined(*pool.UnitOf(address), true);
  }
  std::vector<std::pair<absl::Time, ip::Prefix>> released;
  for (const auto& [key, record] : nodes_) {
    for (const auto& [range, at] : record.released) {
      if (is_free(range.base())) released.emplace_back(at, range);
    }
    for (const auto& [name, wanted] : record.wanted) {
      if (is_new && wanted.pool == pool.spec().name) CountWanted(wanted, true);
    }
  }
  std::sort(released.begin(), released.end());
  for (const auto& [at, range] : released) pool.Cool(range, at + policy_.cooldown);
}

Effects Fleet::TakeAssignment(const NodeKey& key, const node_api::Assignment& assignment,
                              absl::Time now) {
  Effects effects;
  const auto node = nodes_.find(key);
  if (node == nodes_.end()) return effects;
  TakeAssignment(node->second, assignment, effects);
  effects.changed.insert(key);
  effects.Merge(Plan(key, now));
  return effects;
}

Effects Fleet::EndAssignment(const NodeKey& key, const ip::Address& address, uint64_t generation,
                             absl::Time now) {
  return OnReport(key, {.released = {{.address = address, .generation = generation}}}, now);
}

Effects Fleet::Unfreeze(absl::Time now) {
  Effects effects;
  effects.breaker = breaker_.Unfreeze(now).has_value();
  return effects;
}

}  // namespace spoke::ipam
