// What nodes get and give back; what the cloud says about it is in fleet_nic.cc.
#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "ipam-server/ledger/fleet.h"
#include "lib/base/check.h"

namespace spoke::ipam {
namespace {

constexpr size_t kSettledAtOnce = 128;

}  // namespace

std::string Fleet::NextName(NodeRecord& record) const {
  return fmt::format("{}{}", policy_.name_prefix, record.next_configuration++);
}

void Fleet::Assign(NodeRecord& record, size_t pool, const ip::Prefix& range, Effects& effects,
                   absl::Time now) {
  const auto [it, inserted] = record.configurations.try_emplace(
      range.base(), range, pools_[pool].pool.spec().name, NextName(record), now);
  CHECK(inserted, "a unit that was free is on no NIC");
  it->second.state = Next(AddressState::kFree, AddressEvent::kAssign).value();
  Count(it->second, true);
  effects.changed.insert(record.key);
  effects.attach.insert(record.key);
  if (!reservations_.all().empty()) {
    // The change is not stored: what is still missing is worked out anew at start.
    reservations_.OnDelivered(record.key.name, range.family(), static_cast<uint32_t>(range.size()));
  }
}

// The entry has a name before the cloud hears of it, so that an answer that is lost costs nothing:
// what the NIC says under the name is the answer.
void Fleet::Want(NodeRecord& record, size_t pool, Effects& effects, absl::Time now) {
  const AddressPool& from = pools_[pool].pool;
  const int length = from.spec().block_length != 0 ? static_cast<int>(from.spec().block_length)
                                                   : from.spec().cidr.base().bits();
  const WantedEntry wanted{.pool = from.spec().name,
                           .family = from.spec().cidr.family(),
                           .prefix_length = length,
                           .since = now};
  CountWanted(wanted, true);
  record.wanted.emplace(NextName(record), wanted);
  effects.changed.insert(record.key);
  effects.attach.insert(record.key);
  if (!reservations_.all().empty()) {
    reservations_.OnDelivered(record.key.name, wanted.family, static_cast<uint32_t>(wanted.size()));
  }
}

Effects Fleet::Plan(const NodeKey& key, absl::Time now) {
  Effects effects;
  const auto node = nodes_.find(key);
  if (held_ || node == nodes_.end() || node->second.mode != NodeMode::kActive) return effects;
  // What its NIC has already, from the scale set's model say, may be all it needs.
  if (policy_.cloud_chooses && !node->second.nic_read) return effects;
  for (const GroupState& state : GroupStatesOf(node->second)) {
    Grow(node->second, state, effects, now);
  }
  return effects;
}

// Pools are drawn from in the order of the configuration.
void Fleet::Grow(NodeRecord& record, const GroupState& state, Effects& effects, absl::Time now) {
  uint64_t have = state.counts.staying();
  for (const size_t index : state.group->pools) {
    if (have >= state.target) return;
    AddressPool& pool = pools_[index].pool;
    uint64_t left = FreeFor(record, index);
    while (have < state.target && left >= pool.unit_size()) {
      if (record.configurations.size() + record.wanted.size() >= policy_.nic_configurations) return;
      if (policy_.cloud_chooses) {
        Want(record, index, effects, now);
      } else {
        const auto taken = pool.Take(&record, now);
        if (!taken.ok()) break;
        Assign(record, index, *taken, effects, now);
      }
      have += pool.unit_size();
      left -= pool.unit_size();
    }
  }
}

Effects Fleet::Review(const NodeKey& key, double jitter, absl::Time now) {
  Effects effects = Plan(key, now);
  const auto node = nodes_.find(key);
  if (held_ || node == nodes_.end() || node->second.mode == NodeMode::kFrozen ||
      node->second.mode == NodeMode::kRetired) {
    return effects;
  }
  NodeRecord& record = node->second;
  Shrink(record, jitter, effects, now);
  const bool suspect =
      !off_nic_.empty() &&
      std::any_of(record.configurations.begin(), record.configurations.end(),
                  [&](const auto& entry) { return off_nic_.contains(entry.first); });
  if (suspect || (policy_.cloud_chooses && !record.nic_read)) effects.attach.insert(key);
  return effects;
}

void Fleet::Shrink(NodeRecord& record, double jitter, Effects& effects, absl::Time now) {
  const bool draining = record.mode == NodeMode::kDraining;
  if (draining && !record.wanted.empty()) {
    StopWantingAll(record, effects);
    // The cloud is asked what was given nevertheless, to give back what is of no use.
    effects.attach.insert(record.key);
  }
  std::vector<ip::Prefix> asked;
  uint64_t would_free = 0;
  for (const GroupState& state : GroupStatesOf(record)) {
    std::vector<ip::Prefix> ranges;
    NodeHoldings holdings{.target = state.target, .jitter = jitter, .draining = draining};
    for (const auto& [base, configuration] : record.configurations) {
      const std::vector<size_t>& pools = state.group->pools;
      if (configuration.state == AddressState::kDetaching ||
          std::find(pools.begin(), pools.end(), PoolIndexOf(configuration.pool)) == pools.end()) {
        continue;
      }
      holdings.units.push_back({.size = static_cast<uint32_t>(configuration.slots.size()),
                                .available = configuration.state == AddressState::kAttached &&
                                             configuration.IsAvailable(),
                                .available_since = configuration.AvailableSince(),
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
  if (!draining) {
    if (!MayFree(would_free, record.key, effects, now)) return;
    judged_.insert(asked.begin(), asked.end());
  }
  effects.reclaim.emplace(record.key, std::move(asked));
}

bool Fleet::MayFree(uint64_t would_free, const NodeKey& node, Effects& effects, absl::Time now) {
  const bool was_frozen = breaker_.frozen();
  const auto verdict = breaker_.Judge(Counts().total(), would_free, now);
  // What may go counts against the window, after a restart as well.
  effects.breaker = effects.breaker || verdict.allowed || breaker_.frozen() != was_frozen;
  if (breaker_.frozen() != was_frozen) {
    effects.findings.push_back({Finding::Kind::kFrozen, node, ip::Address(), verdict.reason});
  }
  return verdict.allowed;
}

// What the cloud gave too early may have cooled by now. Some nodes at a time, in turn.
void Fleet::SettleSome(Effects& effects, absl::Time now) {
  std::vector<NodeKey> some;
  for (size_t i = 0; i < std::min(kSettledAtOnce, unsettled_.size()); ++i) {
    auto next = unsettled_.upper_bound(some.empty() ? settled_ : some.back());
    if (next == unsettled_.end()) next = unsettled_.begin();
    some.push_back(*next);
  }
  for (const NodeKey& key : some) {
    settled_ = key;
    if (const auto node = nodes_.find(key); node != nodes_.end()) {
      Settle(node->second, effects, now);
    }
  }
}

Effects Fleet::Expire(absl::Time now) {
  Effects effects;
  for (PoolEntry& entry : pools_) entry.pool.EndCooldowns(now);
  ForgetServed(effects, now);
  EndQuarantines(effects, now);
  EndDoubled(now);
  SettleSome(effects, now);
  for (const Reservation& ended : reservations_.Expire(now)) {
    effects.reservations.insert(ended.name);
  }
  std::erase_if(forgettable_, [&](const NodeKey& key) {
    const auto node = nodes_.find(key);
    if (node == nodes_.end() || !node->second.configurations.empty() ||
        !node->second.wanted.empty()) {
      return true;
    }
    NodeRecord& record = node->second;
    const bool cooldown =
        std::any_of(record.released.begin(), record.released.end(),
                    [&](const auto& entry) { return entry.second + policy_.cooldown > now; });
    if (cooldown) return false;
    if (record.mode == NodeMode::kRetired) {
      const std::string name = key.name;
      proved_.erase(key);
      if (const auto on = on_instance_.find(record.instance);
          on != on_instance_.end() && on->second == key) {
        on_instance_.erase(on);
      }
      nodes_.erase(node);
      demands_.erase(key);
      if (FindByName(name) == nullptr) effects.reservations.merge(reservations_.OnNodeGone(name));
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
