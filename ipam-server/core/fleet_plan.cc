// What nodes get and give back, and what the cloud says about it.
#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "ipam-server/core/fleet.h"
#include "lib/base/check.h"

namespace spoke::ipam {

void Fleet::Assign(NodeRecord& record, size_t pool, const ip::Prefix& range, Effects& effects,
                   absl::Time now) {
  const auto [it, inserted] =
      record.configurations.try_emplace(range.base(), range, pools_[pool].pool.spec().name,
                                        fmt::format("spoke-{}", record.next_configuration++), now);
  CHECK(inserted, "a unit that was free is on no NIC");
  it->second.state = Next(LeaseState::kFree, LeaseEvent::kAssign).value();
  Count(it->second, true);
  effects.changed.insert(record.key);
  effects.attach.insert(record.key);
  if (!reservations_.all().empty()) {
    // Not stored: what is still missing is worked out anew at start.
    reservations_.OnDelivered(record.key.name, range.family(), static_cast<uint32_t>(range.size()));
    promises_.reset();
  }
}

Effects Fleet::Plan(const NodeKey& key, absl::Time now) {
  Effects effects;
  const auto node = nodes_.find(key);
  if (node == nodes_.end() || node->second.mode != NodeMode::kActive) return effects;
  for (const GroupState& state : GroupStatesOf(node->second)) {
    Grow(node->second, state, effects, now);
  }
  return effects;
}

// Pools are drawn from in the order of the configuration. False: they had not enough.
bool Fleet::Grow(NodeRecord& record, const GroupState& state, Effects& effects, absl::Time now) {
  uint64_t have = state.counts.staying();
  for (const size_t index : state.group->pools) {
    AddressPool& pool = pools_[index].pool;
    while (have < state.target) {
      if (record.configurations.size() >= policy_.nic_configurations) return false;
      if (FreeFor(record, index) < pool.unit_size()) break;
      const auto taken = pool.Take(&record, now);
      if (!taken.ok()) break;
      Assign(record, index, *taken, effects, now);
      have += pool.unit_size();
    }
  }
  return have >= state.target;
}

Effects Fleet::Review(const NodeKey& key, double jitter, absl::Time now) {
  Effects effects = Plan(key, now);
  const auto node = nodes_.find(key);
  if (node == nodes_.end() || node->second.mode == NodeMode::kFrozen ||
      node->second.mode == NodeMode::kRetired) {
    return effects;
  }
  Shrink(node->second, jitter, effects, now);
  return effects;
}

void Fleet::Shrink(NodeRecord& record, double jitter, Effects& effects, absl::Time now) {
  const bool draining = record.mode == NodeMode::kDraining;
  std::vector<ip::Prefix> asked;
  uint64_t would_free = 0;
  for (const GroupState& state : GroupStatesOf(record)) {
    std::vector<ip::Prefix> ranges;
    NodeHoldings holdings{.target = state.target, .jitter = jitter, .draining = draining};
    for (const auto& [base, configuration] : record.configurations) {
      const std::vector<size_t>& pools = state.group->pools;
      if (configuration.state == LeaseState::kDetaching ||
          std::find(pools.begin(), pools.end(), PoolIndexOf(configuration.pool)) == pools.end()) {
        continue;
      }
      holdings.units.push_back(
          {.size = static_cast<uint32_t>(configuration.slots.size()),
           .idle = configuration.state == LeaseState::kAttached && configuration.IsIdle(),
           .idle_since = configuration.IdleSince(),
           .denied_until = configuration.denied_until});
      ranges.push_back(configuration.range);
    }
    for (const size_t index : PlanRelease(policy_.release, holdings, now)) {
      asked.push_back(ranges[index]);
      would_free += holdings.units[index].size;
    }
  }
  if (asked.empty() || breaker_.frozen()) return;
  // Draining is what an operator wants of this node; the breaker guards against what nobody wants.
  if (!draining && !MayFree(would_free, record.key, effects, now)) return;
  effects.reclaim.emplace(record.key, std::move(asked));
}

bool Fleet::MayFree(uint64_t would_free, const NodeKey& node, Effects& effects, absl::Time now) {
  const bool was_frozen = breaker_.frozen();
  const auto verdict = breaker_.Judge(Counts().total(), would_free, now);
  if (breaker_.frozen() != was_frozen) {
    effects.breaker = true;
    effects.findings.push_back({Finding::Kind::kFrozen, node, ip::Address(), verdict.reason});
  }
  return verdict.allowed;
}

Effects Fleet::OnNic(const NodeKey& key, const std::set<ip::Prefix>& on_nic, absl::Time now) {
  Effects effects;
  const auto node = nodes_.find(key);
  if (node == nodes_.end()) return effects;
  NodeRecord& record = node->second;
  std::vector<ip::Address> detached;
  for (auto& [base, configuration] : record.configurations) {
    const bool there = on_nic.contains(configuration.range);
    const auto next =
        Next(configuration.state, there ? LeaseEvent::kCloudAttached : LeaseEvent::kCloudDetached);
    if (!next || *next == configuration.state) continue;
    if (*next == LeaseState::kFree) {
      detached.push_back(base);
      continue;
    }
    effects.attach_times.push_back(now - configuration.since);
    SetState(configuration, *next, now);
    for (size_t i = 0; i < configuration.slots.size(); ++i) {
      if (configuration.slots[i].use == Use::kIdle) configuration.slots[i].since = now;
      effects.history.push_back(
          EntryOf(HistoryEvent::kAttached, key, configuration.AddressAt(i), now));
    }
    effects.changed.insert(key);
    effects.desired.insert(key);
  }
  for (const ip::Address& base : detached) Free(record, base, effects, now);
  return effects;
}

void Fleet::Free(NodeRecord& record, const ip::Address& base, Effects& effects, absl::Time now) {
  const auto it = record.configurations.find(base);
  const ip::Prefix range = it->second.range;
  const size_t pool = PoolIndexOf(it->second.pool);
  Count(it->second, false);
  for (size_t i = 0; i < it->second.slots.size(); ++i) {
    const Slot& slot = it->second.slots[i];
    const ip::Address address = it->second.AddressAt(i);
    if (slot.lessee != nullptr) {
      effects.history.push_back(EntryOf(HistoryEvent::kReleased, record.key, address, now, &slot));
    }
    effects.history.push_back(EntryOf(HistoryEvent::kDetached, record.key, address, now));
  }
  record.configurations.erase(it);
  std::erase_if(record.released,
                [&](const auto& entry) { return entry.second + policy_.cooldown <= now; });
  record.released[range] = now;
  CHECK(pools_[pool].pool.Release(range, now + policy_.cooldown), "the pool knew it was held");
  effects.changed.insert(record.key);
  effects.desired.insert(record.key);
  if (record.configurations.empty()) forgettable_.insert(record.key);
}

void Fleet::FreeAll(NodeRecord& record, Effects& effects, absl::Time now) {
  while (!record.configurations.empty()) {
    const auto& [base, configuration] = *record.configurations.begin();
    CHECK(Next(configuration.state, LeaseEvent::kNodeGone) == LeaseState::kFree,
          "a node that is gone holds nothing");
    Free(record, base, effects, now);
  }
}

Effects Fleet::OnListing(const std::set<NodeKey>& present, const std::set<NodeKey>& connected,
                         absl::Time now) {
  Effects effects;
  std::set<NodeKey> missing;
  std::vector<NodeRecord*> gone;
  uint64_t known = 0;
  uint64_t would_free = 0;
  for (auto& [key, record] : nodes_) {
    if (record.configurations.empty()) continue;
    ++known;
    if (present.contains(key)) continue;
    missing.insert(key);
    if (!missing_.contains(key) || connected.contains(key)) continue;
    gone.push_back(&record);
    would_free += CountAddresses(record).total();
  }
  missing_ = std::move(missing);
  if (gone.empty()) return effects;
  const bool was_frozen = breaker_.frozen();
  const auto shrank =
      breaker_.SourceShrank("the cloud's list of VMs", known, known - missing_.size(), now);
  if (breaker_.frozen() != was_frozen) {
    effects.breaker = true;
    effects.findings.push_back({Finding::Kind::kFrozen, NodeKey(), ip::Address(), shrank.reason});
  }
  if (!shrank.allowed || !MayFree(would_free, NodeKey(), effects, now)) return effects;
  for (NodeRecord* record : gone) {
    effects.findings.push_back(
        {Finding::Kind::kGone, record->key, ip::Address(),
         fmt::format("{} addresses are free after the cooldown", CountAddresses(*record).total())});
    FreeAll(*record, effects, now);
    record->mode = NodeMode::kRetired;
  }
  return effects;
}

Effects Fleet::Expire(absl::Time now) {
  Effects effects;
  for (PoolEntry& entry : pools_) entry.pool.EndCooldowns(now);
  for (const Reservation& ended : reservations_.Expire(now)) {
    effects.reservations.insert(ended.name);
    promises_.reset();
  }
  std::erase_if(forgettable_, [&](const NodeKey& key) {
    const auto node = nodes_.find(key);
    if (node == nodes_.end() || !node->second.configurations.empty()) return true;
    NodeRecord& record = node->second;
    const bool cooling =
        std::any_of(record.released.begin(), record.released.end(),
                    [&](const auto& entry) { return entry.second + policy_.cooldown > now; });
    if (cooling) return false;
    if (record.mode == NodeMode::kRetired) {
      const std::string name = key.name;
      nodes_.erase(node);
      if (FindByName(name) == nullptr) effects.reservations.merge(reservations_.OnNodeGone(name));
      promises_.reset();
    } else if (!record.released.empty()) {
      record.released.clear();
    } else {
      return true;
    }
    effects.changed.insert(key);
    return true;
  });
  return effects;
}

}  // namespace spoke::ipam
