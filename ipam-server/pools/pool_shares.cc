#include "ipam-server/pools/pool_shares.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>

#include "lib/base/check.h"

namespace spoke::ipam {
namespace {

constexpr size_t kNone = std::numeric_limits<size_t>::max();

// Demands with the same pools.
struct Group {
  std::vector<size_t> pools;
  std::vector<size_t> demands;
  uint64_t wanted = 0;         // Lots not yet served.
  std::vector<uint64_t> from;  // Lots served, by pool.
};

// Maximum flow from groups to pools along shortest augmenting paths (Edmonds and Karp): a group
// takes from a pool that is spent by moving another group to a pool that is not.
class Flow {
 public:
  Flow(std::vector<Group>& groups, std::vector<uint64_t> spare)
      : groups_(groups), spare_(std::move(spare)) {}

  // Returns false when no path is left; seen_pools() then are the pools that hold `start` back.
  bool Augment(size_t start) {
    Search(start);
    size_t end = kNone;
    for (const size_t pool : order_) {
      if (spare_[pool] > 0) {
        end = pool;
        break;
      }
    }
    if (end == kNone) return false;
    uint64_t lots = std::min(groups_[start].wanted, spare_[end]);
    Walk(end, [&](size_t group, size_t, size_t left) {
      if (left != kNone) lots = std::min(lots, groups_[group].from[left]);
    });
    Walk(end, [&](size_t group, size_t taken, size_t left) {
      groups_[group].from[taken] += lots;
      if (left != kNone) groups_[group].from[left] -= lots;
    });
    spare_[end] -= lots;
    groups_[start].wanted -= lots;
    return true;
  }

  const std::vector<size_t>& seen_pools() const { return order_; }

 private:
  // Finds all pools that `start` could draw from if others moved, nearest first.
  void Search(size_t start) {
    order_.clear();
    pool_via_.assign(spare_.size(), kNone);
    group_via_.assign(groups_.size(), kNone);
    std::vector<bool> seen_group(groups_.size(), false);
    std::vector<bool> seen_pool(spare_.size(), false);
    seen_group[start] = true;
    std::deque<size_t> todo{start};
    while (!todo.empty()) {
      const size_t group = todo.front();
      todo.pop_front();
      for (const size_t pool : groups_[group].pools) {
        if (seen_pool[pool]) continue;
        seen_pool[pool] = true;
        pool_via_[pool] = group;
        order_.push_back(pool);
        for (size_t other = 0; other < groups_.size(); ++other) {
          if (seen_group[other] || groups_[other].from[pool] == 0) continue;
          seen_group[other] = true;
          group_via_[other] = pool;
          todo.push_back(other);
        }
      }
    }
  }

  // Walks from the last pool to the start: visit(group, pool it takes from, pool it leaves).
  template <typename Visit>
  void Walk(size_t end, const Visit& visit) const {
    for (size_t pool = end; pool != kNone;) {
      const size_t group = pool_via_[pool];
      const size_t left = group_via_[group];
      visit(group, pool, left);
      pool = left;
    }
  }

  std::vector<Group>& groups_;
  std::vector<uint64_t> spare_;
  std::vector<size_t> order_;
  std::vector<size_t> pool_via_;   // The group that reached the pool.
  std::vector<size_t> group_via_;  // The pool that the group would leave.
};

uint64_t LotsFor(uint64_t addresses, uint64_t lot) { return (addresses + lot - 1) / lot; }

std::vector<Group> GroupDemands(std::span<const PoolDemand> demands, size_t pools, uint64_t lot) {
  std::map<std::vector<size_t>, size_t> index;
  std::vector<Group> groups;
  for (size_t i = 0; i < demands.size(); ++i) {
    const auto [found, is_new] = index.try_emplace(demands[i].pools, groups.size());
    if (is_new) {
      groups.push_back({.pools = demands[i].pools, .from = std::vector<uint64_t>(pools, 0)});
    }
    groups[found->second].demands.push_back(i);
    groups[found->second].wanted += LotsFor(demands[i].addresses, lot);
  }
  return groups;
}

uint64_t LargestUnit(std::span<const PoolDemand> demands, std::span<const PoolSupply> pools) {
  uint64_t lot = 1;
  for (const PoolDemand& demand : demands) {
    if (demand.addresses == 0) continue;
    for (const size_t pool : demand.pools) {
      CHECK(pool < pools.size() && pools[pool].unit > 0, "a demand names pools that there are");
      lot = std::max<uint64_t>(lot, pools[pool].unit);
    }
  }
  return lot;
}

}  // namespace

PoolDivision DividePools(std::span<const PoolDemand> demands, std::span<const PoolSupply> pools) {
  PoolDivision division;
  division.by_demand.resize(demands.size());
  division.by_pool.resize(pools.size());
  const uint64_t lot = LargestUnit(demands, pools);
  std::vector<Group> groups = GroupDemands(demands, pools.size(), lot);
  std::vector<uint64_t> lots;
  for (const PoolSupply& pool : pools) lots.push_back(pool.free / lot);
  Flow flow(groups, std::move(lots));
  std::vector<bool> tight(pools.size(), false);
  for (size_t i = 0; i < groups.size(); ++i) {
    while (groups[i].wanted > 0 && flow.Augment(i)) {
    }
    if (groups[i].wanted == 0) continue;
    division.short_by += groups[i].wanted * lot;
    for (const size_t pool : flow.seen_pools()) tight[pool] = true;
  }
  for (size_t i = 0; i < tight.size(); ++i) {
    if (tight[i]) division.bottleneck.push_back(i);
  }
  for (Group& group : groups) {
    size_t next = 0;
    for (const size_t i : group.demands) {
      uint64_t wanted = LotsFor(demands[i].addresses, lot);
      while (wanted > 0 && next < group.pools.size()) {
        const size_t pool = group.pools[next];
        const uint64_t taken = std::min(wanted, group.from[pool]);
        if (taken > 0) division.by_demand[i].push_back({pool, taken * lot});
        division.by_pool[pool] += taken * lot;
        wanted -= taken;
        group.from[pool] -= taken;
        if (group.from[pool] == 0) ++next;
      }
    }
  }
  return division;
}

}  // namespace spoke::ipam
