#include "ipam-server/ledger/scarcity.h"

#include <algorithm>

#include "ipam-server/ledger/promises.h"
#include "ipam-server/ledger/targets.h"

namespace spoke::ipam {
namespace {

// Returns how many addresses the node's pods wait for, beyond all that it has and will have, and
// that its NIC could take, in whole units.
uint64_t ShortOf(const Fleet& fleet, const NodeRecord& record, const GroupState& state) {
  const uint64_t needed = std::min<uint64_t>(state.counts.used() + state.waiting, state.target);
  const size_t entries = record.configurations.size() + record.wanted.size();
  if (state.waiting == 0 || needed <= state.counts.staying() ||
      entries >= fleet.policy.nic_configurations) {
    return 0;
  }
  const uint64_t unit = fleet.ledger.pools()[state.group->pools.front()].pool.unit_size();
  const uint64_t units = (needed - state.counts.staying() + unit - 1) / unit;
  return unit * std::min<uint64_t>(units, fleet.policy.nic_configurations - entries);
}

bool CanGrow(const Fleet& fleet, const NodeRecord& record) {
  return record.mode == NodeMode::kActive && !IsEnding(fleet, record.key) &&
         (record.nic_read || !fleet.policy.cloud_chooses);
}

bool IsServable(const Fleet& fleet, const NodeRecord& record, const GroupState& state) {
  return std::any_of(state.group->pools.begin(), state.group->pools.end(), [&](size_t pool) {
    return FreeFor(fleet, record, pool) >= fleet.ledger.pools()[pool].pool.unit_size();
  });
}

// Returns how many addresses of each pool are free, or will be without anybody's doing.
std::vector<uint64_t> SupplyOf(const Fleet& fleet, absl::Time now) {
  const PoolSet& pools = fleet.ledger.pools();
  const Promises promises = AllPromises(fleet);
  std::vector<uint64_t> supply(pools.size());
  for (size_t i = 0; i < pools.size(); ++i) {
    const uint64_t promised = i < promises.by_pool.size() ? promises.by_pool[i] : 0;
    const uint64_t coming = pools[i].free() + pools[i].pool.cooldown() + pools[i].counts.detaching;
    supply[i] = coming - std::min(coming, promised);
  }
  for (const auto& [asked, at] : fleet.judged) {
    if (now - at >= kAnswerTime) continue;
    const PoolEntry* const pool = pools.Offering(asked.base());
    if (pool != nullptr) supply[static_cast<size_t>(pool - &*pools.begin())] += asked.size();
  }
  return supply;
}

}  // namespace

uint64_t Scarcity::Of(const std::vector<size_t>& pools) const {
  uint64_t sum = 0;
  for (const auto& [any_of, addresses] : missing) {
    if (std::find_first_of(any_of.begin(), any_of.end(), pools.begin(), pools.end()) !=
        any_of.end()) {
      sum += addresses;
    }
  }
  return sum;
}

void Scarcity::Subtract(size_t pool, uint64_t addresses) {
  for (auto& [any_of, left] : missing) {
    if (std::find(any_of.begin(), any_of.end(), pool) == any_of.end()) continue;
    const uint64_t part = std::min(left, addresses);
    left -= part;
    addresses -= part;
  }
  std::erase_if(missing, [](const auto& entry) { return entry.second == 0; });
}

Scarcity ScarcityOf(const Fleet& fleet, const NodeKey& after, size_t nodes, absl::Time now) {
  Scarcity scarcity;
  if (fleet.hold.active) return scarcity;
  const size_t most = std::min(nodes, fleet.demands.size());
  auto it = fleet.demands.upper_bound(after);
  for (size_t i = 0; i < most; ++i, ++it) {
    if (it == fleet.demands.end()) it = fleet.demands.begin();
    scarcity.last = it->first;
    const NodeRecord* const record = fleet.ledger.Find(it->first);
    if (record == nullptr || !CanGrow(fleet, *record)) continue;
    bool servable = false;
    for (const GroupState& state : GroupStatesOf(fleet, *record)) {
      const uint64_t missing = ShortOf(fleet, *record, state);
      if (missing == 0) continue;
      scarcity.missing[state.group->pools] += missing;
      servable = servable || IsServable(fleet, *record, state);
    }
    if (servable) scarcity.servable.push_back(it->first);
  }
  if (scarcity.missing.empty()) return scarcity;
  const std::vector<uint64_t> supply = SupplyOf(fleet, now);
  for (size_t pool = 0; pool < supply.size(); ++pool) scarcity.Subtract(pool, supply[pool]);
  return scarcity;
}

}  // namespace spoke::ipam
