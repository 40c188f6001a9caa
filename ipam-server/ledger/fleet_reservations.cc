// Reservations: what is promised of the pools, and to whom.
#include <algorithm>
#include <utility>

#include "ipam-server/ledger/fleet.h"
#include "lib/base/status.h"

namespace spoke::ipam {

// What a node that draws from `groups` has and could have of the general pools; `record`: the node,
// when it is there already.
NodeRoom Fleet::RoomOf(const std::vector<PoolGroup>& groups, const NodeRecord* record) const {
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
          const size_t pool = PoolIndexOf(entry.pool);
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
    const AddressPool& first = pools_[group.pools.front()].pool;
    family.cap = policy_.nic_configurations * static_cast<uint32_t>(first.unit_size());
    for (const size_t pool : group.pools) {
      family.unit = std::max(family.unit, static_cast<uint32_t>(pools_[pool].pool.unit_size()));
    }
    room.push_back(std::move(family));
  }
  return room;
}

CapacityView Fleet::Capacity(const std::vector<std::string>& nodes, Holdings holdings) const {
  CapacityView view;
  for (const PoolEntry& entry : pools_) {
    view.pools.push_back({.name = entry.pool.spec().name,
                          .free = entry.free(),
                          .unit = static_cast<uint32_t>(entry.pool.unit_size())});
  }
  for (const std::string& name : nodes) {
    const NodeRecord* record = FindByName(name);
    if (record == nullptr) continue;
    const NodeRecord* counted = holdings == Holdings::kCounted ? record : nullptr;
    view.nodes.insert_or_assign(name, RoomOf(GroupsFor(*record), counted));
  }
  view.joining = RoomOf(GroupsFor({}, "", {}), nullptr);
  if (view.joining.empty() && !nodes_.empty()) {
    // Every pool wants labels: one more node is taken to look like those that are there.
    const NodeRecord& like = nodes_.begin()->second;
    view.joining = RoomOf(GroupsFor(like), nullptr);
  }
  return view;
}

std::vector<std::string> Fleet::NodesWithPromises() const {
  std::vector<std::string> nodes;
  for (const auto& [name, reservation] : reservations_.all()) {
    for (const auto& [node, missing] : reservation.missing) nodes.push_back(node);
  }
  return nodes;
}

// What is promised to a reservation is only for the nodes it names.
uint64_t Fleet::FreeFor(const NodeRecord& record, size_t pool) const {
  if (reservations_.all().empty()) return pools_[pool].free();
  return reservations_.LeftFor(record.key.name, pools_[pool].pool.spec().cidr.family(), pool,
                               Capacity({}));
}

Promises Fleet::AllPromises() const {
  if (reservations_.all().empty()) return {};
  return reservations_.PromisesIn(Capacity({}));
}

uint64_t Fleet::PromisedOf(const std::string& pool) const {
  const Promises promises = AllPromises();
  const size_t index = PoolIndexOf(pool);
  return index < promises.by_pool.size() ? promises.by_pool[index] : 0;
}

void Fleet::ClaimReserved(const NodeRecord& record, Effects& effects) {
  if (reservations_.all().empty()) return;
  const auto name = reservations_.OnNodeJoined(record.key.name, Capacity({record.key.name}));
  if (name) effects.reservations.insert(*name);
}

absl::StatusOr<Effects> Fleet::Reserve(const ReservationRequest& request, absl::Time now,
                                       bool dry_run) {
  RETURN_IF_ERROR(CheckNotHeld());
  const CapacityView view = Capacity(request.nodes);
  ASSIGN_OR_RETURN(Reservation reservation, reservations_.Plan(request, view, now));
  Effects effects;
  if (dry_run) return effects;
  std::vector<std::string> nodes;
  for (const auto& [node, missing] : reservation.missing) nodes.push_back(node);
  effects.reservations.insert(reservation.name);
  reservations_.Add(std::move(reservation), view);
  for (const std::string& name : nodes) {
    if (const NodeRecord* record = FindByName(name); record != nullptr) {
      effects.plan.insert(record->key);
    }
  }
  return effects;
}

absl::StatusOr<Effects> Fleet::EndReservation(const std::string& name) {
  RETURN_IF_ERROR(reservations_.Release(name).status());
  Effects effects;
  effects.reservations.insert(name);
  return effects;
}

}  // namespace spoke::ipam
