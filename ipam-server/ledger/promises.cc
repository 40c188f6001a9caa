#include "ipam-server/ledger/promises.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "ipam-server/pools/pool_plan.h"

namespace spoke::ipam {
namespace {

// What a node that draws from `groups` has and could have of the general pools; `record`: the node,
// when it is there already.
NodeRoom RoomOf(const Fleet& fleet, const std::vector<PoolGroup>& groups,
                const NodeRecord* record) {
  const PoolSet& pools = fleet.ledger.pools();
  NodeRoom room;
  for (const PoolGroup& group : groups) {
    if (!group.namespaces.empty()) continue;
    FamilyRoom family{.family = group.family, .pools = group.pools};
    AddressCounts counts;
    if (record != nullptr) {
      // A node's addresses are mostly of one pool.
      std::string_view last;
      bool counts_here = false;
      const auto add = [&](const auto& entry) {
        if (last != entry.pool) {
          last = entry.pool;
          const size_t pool = pools.IndexOf(entry.pool);
          counts_here =
              std::find(group.pools.begin(), group.pools.end(), pool) != group.pools.end();
        }
        if (counts_here) counts.Add(entry);
      };
      for (const auto& [base, configuration] : record->configurations) add(configuration);
      for (const auto& [name, wanted] : record->wanted) add(wanted);
    }
    family.held = static_cast<uint32_t>(counts.staying());
    family.target = TargetAddresses(group.target, static_cast<uint32_t>(counts.used()));
    const AddressPool& first = pools[group.pools.front()].pool;
    family.cap = fleet.policy.nic_configurations * static_cast<uint32_t>(first.unit_size());
    for (const size_t pool : group.pools) {
      family.unit = std::max(family.unit, static_cast<uint32_t>(pools[pool].pool.unit_size()));
    }
    room.push_back(std::move(family));
  }
  return room;
}

}  // namespace

CapacityView CapacityOf(const Fleet& fleet, const std::vector<std::string>& nodes,
                        Holdings holdings) {
  const PoolSet& pools = fleet.ledger.pools();
  CapacityView view;
  for (const PoolEntry& entry : pools) {
    view.pools.push_back({.name = entry.pool.spec().name,
                          .free = entry.free(),
                          .unit = static_cast<uint32_t>(entry.pool.unit_size())});
  }
  for (const std::string& name : nodes) {
    const NodeRecord* record = FindByName(fleet.ledger, name);
    if (record == nullptr) continue;
    const NodeRecord* counted = holdings == Holdings::kCounted ? record : nullptr;
    view.nodes.insert_or_assign(name, RoomOf(fleet, pools.GroupsFor(*record), counted));
  }
  view.joining = RoomOf(fleet, pools.GroupsFor({}, "", {}), nullptr);
  if (view.joining.empty() && !fleet.ledger.nodes().empty()) {
    // Every pool wants labels: one more node is taken to look like those that are there.
    const NodeRecord& like = fleet.ledger.nodes().begin()->second;
    view.joining = RoomOf(fleet, pools.GroupsFor(like), nullptr);
  }
  return view;
}

uint64_t FreeFor(const Fleet& fleet, const NodeRecord& record, size_t pool) {
  const PoolEntry& entry = fleet.ledger.pools()[pool];
  if (fleet.reservations.all().empty()) return entry.free();
  return fleet.reservations.LeftFor(record.key.name, entry.pool.spec().cidr.family(), pool,
                                    CapacityOf(fleet, {}));
}

Promises AllPromises(const Fleet& fleet) {
  if (fleet.reservations.all().empty()) return {};
  return fleet.reservations.PromisesIn(CapacityOf(fleet, {}));
}

uint64_t PromisedOf(const Fleet& fleet, const std::string& pool) {
  const Promises promises = AllPromises(fleet);
  const size_t index = fleet.ledger.pools().IndexOf(pool);
  return index < promises.by_pool.size() ? promises.by_pool[index] : 0;
}

}  // namespace spoke::ipam
