// Loading, indices and lookups; what events change is in fleet_agents.cc, fleet_nic.cc,
// fleet_plan.cc and fleet_operator.cc.
#include "ipam-server/ledger/fleet.h"

#include <algorithm>

#include "fmt/core.h"
#include "lib/base/check.h"

namespace spoke::ipam {
namespace {

bool Selects(const PoolSpec& spec, const std::map<std::string, std::string>& labels,
             const std::string& vnet, const std::vector<ip::Prefix>& subnets) {
  if (!spec.vnet.empty() && spec.vnet != vnet) return false;
  const auto holds = [&](const ip::Prefix& subnet) {
    return subnet.Contains(spec.cidr.base()) && subnet.Contains(spec.cidr.last());
  };
  if (!subnets.empty() && std::none_of(subnets.begin(), subnets.end(), holds)) return false;
  return std::all_of(spec.node_labels.begin(), spec.node_labels.end(), [&](const auto& wanted) {
    const auto it = labels.find(wanted.first);
    return it != labels.end() && it->second == wanted.second;
  });
}

}  // namespace

void Effects::Merge(Effects other) {
  changed.merge(other.changed);
  quarantined.merge(other.quarantined);
  reservations.merge(other.reservations);
  breaker = breaker || other.breaker;
  recovery = recovery || other.recovery;
  plan.merge(other.plan);
  attach.merge(other.attach);
  desired.merge(other.desired);
  resend.merge(other.resend);
  retry.merge(other.retry);
  for (auto& [key, ends] : other.end_assignments) {
    auto& mine = end_assignments[key];
    mine.insert(mine.end(), std::make_move_iterator(ends.begin()),
                std::make_move_iterator(ends.end()));
  }
  greet_anew.merge(other.greet_anew);
  renamed.merge(other.renamed);
  for (auto& [node, ranges] : other.reclaim) {
    auto& mine = reclaim[node];
    mine.insert(mine.end(), ranges.begin(), ranges.end());
  }
  findings.insert(findings.end(), std::make_move_iterator(other.findings.begin()),
                  std::make_move_iterator(other.findings.end()));
  attach_times.insert(attach_times.end(), other.attach_times.begin(), other.attach_times.end());
  history.insert(history.end(), std::make_move_iterator(other.history.begin()),
                 std::make_move_iterator(other.history.end()));
}

HistoryEntry EntryOf(HistoryEvent event, const NodeKey& node, const ip::Address& address,
                     absl::Time at, const Slot* slot) {
  HistoryEntry entry{
      .at = at, .event = event, .address = address, .node = node.name, .vm_id = node.vm_id};
  if (slot != nullptr && slot->lessee != nullptr) {
    entry.pod_namespace = slot->lessee->pod_namespace;
    entry.pod_name = slot->lessee->pod_name;
    entry.pod_uid = slot->lessee->pod_uid;
    entry.container_id = slot->lessee->container_id;
    entry.ifname = slot->lessee->ifname;
    entry.generation = slot->generation;
  }
  return entry;
}

bool Effects::Stores() const {
  return !changed.empty() || !quarantined.empty() || !reservations.empty() || breaker || recovery;
}

Fleet::Fleet(const std::vector<PoolSpec>& pools, const FleetPolicy& policy)
    : policy_(policy), breaker_(policy.breaker) {
  for (const PoolSpec& spec : pools) {
    pool_index_.emplace(spec.name, pools_.size());
    pools_.push_back({AddressPool(spec), {}});
  }
}

absl::Status Fleet::Load(NodeRecord stored) {
  const auto [it, inserted] = nodes_.emplace(stored.key, std::move(stored));
  CHECK(inserted, "a store has one record a node");
  NodeRecord& record = it->second;
  for (auto& entry : record.configurations) {
    Configuration& configuration = entry.second;
    const auto pool = std::find_if(pools_.begin(), pools_.end(), [&](const PoolEntry& candidate) {
      return candidate.pool.Owns(configuration.range);
    });
    if (pool == pools_.end()) {
      return absl::FailedPreconditionError(fmt::format(
          "node {} ({}) holds {}, which no configured pool covers: restore the pool \"{}\" in the "
          "configuration",
          record.key.name, record.key.vm_id, configuration.range.ToString(), configuration.pool));
    }
    if (!pool->pool.Hold(configuration.range, &record)) {
      return absl::FailedPreconditionError(fmt::format(
          "address {} is held by two nodes, {} and {}: the store is damaged, restore a backup",
          entry.first.ToString(), pool->pool.OwnerOf(entry.first)->key.name, record.key.name));
    }
    configuration.pool = pool->pool.spec().name;  // It may have had another name when stored.
    pool->counts += CountAddresses(configuration);
  }
  for (const auto& [name, wanted] : record.wanted) {
    CountWanted(wanted, true);
    if (wanted.given) unsettled_.insert(record.key);
  }
  if (record.instance.empty()) return absl::OkStatus();
  // The newer of two under one name has the place; a retired one has it while nobody else does.
  if (record.mode == NodeMode::kRetired) {
    on_instance_.try_emplace(record.instance, record.key);
  } else {
    on_instance_[record.instance] = record.key;
  }
  return absl::OkStatus();
}

void Fleet::LoadQuarantine(const ip::Address& address, Quarantine quarantine) {
  if (PoolEntry* entry = PoolEntryOf(address); entry != nullptr) {
    entry->pool.SetQuarantined(*entry->pool.UnitOf(address), true);
  }
  if (quarantine.until) quarantine_ends_.emplace(*quarantine.until, address);
  if (quarantine.doubled && quarantine.until) {
    doubled_[address] = {
        .holders = quarantine.reason, .holder = NodeKey(), .until = *quarantine.until};
  }
  quarantine_[address] = std::move(quarantine);
}

void Fleet::LoadReservation(Reservation reservation) {
  reservations_.Add(std::move(reservation), {});
}

void Fleet::LoadBreaker(const BreakerState& state) {
  breaker_ = MassReleaseBreaker(policy_.breaker, state);
}

void Fleet::FinishLoading(absl::Time now) {
  std::vector<std::pair<absl::Time, ip::Prefix>> released;
  for (const auto& [key, record] : nodes_) {
    for (const auto& [range, at] : record.released) released.emplace_back(at, range);
    if (record.configurations.empty() && record.wanted.empty()) forgettable_.insert(key);
  }
  std::sort(released.begin(), released.end());
  for (const auto& [at, range] : released) {
    PoolEntry* entry = PoolEntryOf(range.base());
    // A clock that was put back must not keep an address from use for longer than the cooldown.
    if (entry != nullptr) entry->pool.Cool(range, std::min(at, now) + policy_.cooldown);
  }
  for (PoolEntry& entry : pools_) entry.pool.EndCooldowns(now);
  if (!reservations_.all().empty()) reservations_.Recount(Capacity(NodesWithPromises()));
}

const NodeRecord* Fleet::Find(const NodeKey& key) const {
  const auto it = nodes_.find(key);
  return it == nodes_.end() ? nullptr : &it->second;
}

const NodeRecord* Fleet::FindByName(const std::string& name) const {
  for (auto it = nodes_.lower_bound({name, ""}); it != nodes_.end() && it->first.name == name;
       ++it) {
    if (it->second.mode != NodeMode::kRetired) return &it->second;
  }
  return nullptr;
}

AddressCounts Fleet::Counts() const {
  AddressCounts counts;
  for (const PoolEntry& entry : pools_) counts += entry.counts;
  return counts;
}

const NodeRecord* Fleet::HolderOf(const ip::Address& address) const {
  const AddressPool* pool = PoolOf(address);
  return pool == nullptr ? nullptr : pool->OwnerOf(address);
}

const AddressPool* Fleet::PoolOf(const ip::Address& address) const {
  const auto it = std::find_if(pools_.begin(), pools_.end(), [&](const PoolEntry& candidate) {
    return candidate.pool.spec().cidr.Contains(address);
  });
  return it == pools_.end() ? nullptr : &it->pool;
}

const PoolEntry* Fleet::PoolNamed(const std::string& name) const {
  const auto it = pool_index_.find(name);
  return it == pool_index_.end() ? nullptr : &pools_[it->second];
}

size_t Fleet::PoolIndexOf(const std::string& name) const {
  const auto it = pool_index_.find(name);
  return it == pool_index_.end() ? pools_.size() : it->second;
}

PoolEntry* Fleet::PoolEntryOf(const ip::Address& address) {
  const auto it = std::find_if(pools_.begin(), pools_.end(), [&](const PoolEntry& candidate) {
    return candidate.pool.UnitOf(address).has_value();
  });
  return it == pools_.end() ? nullptr : &*it;
}

const std::vector<PoolGroup>& Fleet::GroupsFor(const std::map<std::string, std::string>& labels,
                                               const std::string& vnet,
                                               const std::vector<ip::Prefix>& subnets) const {
  const auto [it, inserted] = groups_.try_emplace({labels, vnet, subnets});
  if (!inserted) return it->second;
  std::vector<PoolGroup>& groups = it->second;
  for (size_t i = 0; i < pools_.size(); ++i) {
    const PoolSpec& spec = pools_[i].pool.spec();
    if (!Selects(spec, labels, vnet, subnets)) continue;
    auto group = std::find_if(groups.begin(), groups.end(), [&](const PoolGroup& candidate) {
      return candidate.family == spec.cidr.family() && candidate.namespaces == spec.namespaces;
    });
    if (group == groups.end()) {
      // The first pool of a group says how much a node holds of it.
      groups.push_back({.family = spec.cidr.family(),
                        .namespaces = spec.namespaces,
                        .target = spec.target.value_or(policy_.target)});
      group = std::prev(groups.end());
    }
    group->pools.push_back(i);
  }
  return groups;
}

std::vector<Fleet::GroupState> Fleet::GroupStatesOf(const NodeRecord& record) const {
  const std::vector<PoolGroup>& groups = GroupsFor(record);
  std::vector<GroupState> states;
  states.reserve(groups.size());
  for (const PoolGroup& group : groups) states.push_back({&group, 0, {}});
  const auto add = [&](const auto& entry) {
    const size_t pool = PoolIndexOf(entry.pool);
    for (GroupState& state : states) {
      const std::vector<size_t>& pools = state.group->pools;
      if (std::find(pools.begin(), pools.end(), pool) == pools.end()) continue;
      state.counts.Add(entry);
      break;
    }
  };
  for (const auto& [base, configuration] : record.configurations) add(configuration);
  for (const auto& [name, wanted] : record.wanted) add(wanted);
  const uint32_t reserved = reservations_.ReservedFor(record.key.name);
  AddWaiting(record, states);
  for (GroupState& state : states) {
    const bool general = state.group->namespaces.empty();
    const uint32_t used = static_cast<uint32_t>(state.counts.used()) + state.waiting;
    state.target = TargetAddresses(state.group->target, used, general ? reserved : 0);
  }
  return states;
}

uint64_t Fleet::TargetOf(const NodeRecord& record) const {
  if (record.mode == NodeMode::kDraining || record.mode == NodeMode::kRetired) return 0;
  uint64_t target = 0;
  for (const GroupState& state : GroupStatesOf(record)) target += state.target;
  return target;
}

bool Fleet::IsShort(const NodeRecord& record) const {
  if (record.mode == NodeMode::kDraining || record.mode == NodeMode::kRetired) return false;
  if (!ProblemOf(record).empty()) return true;
  const std::vector<GroupState> states = GroupStatesOf(record);
  return states.empty() || std::any_of(states.begin(), states.end(), [](const GroupState& state) {
           return state.counts.staying() < state.target;
         });
}

std::string Fleet::ShortageOf(const NodeRecord& record) const {
  if (record.mode == NodeMode::kDraining || record.mode == NodeMode::kRetired) return "";
  const std::vector<GroupState> states = GroupStatesOf(record);
  if (states.empty()) {
    return fmt::format(
        "no pool is meant for this node: its virtual network is \"{}\"; see node "
        "labels and the pools' nodeLabels and vnet",
        record.vnet);
  }
  std::string why = ProblemOf(record);
  for (const GroupState& state : states) {
    if (state.counts.staying() >= state.target) continue;
    why += fmt::format("{}has {} of {} addresses: ", why.empty() ? "" : "; ",
                       state.counts.staying(), state.target);
    if (record.mode == NodeMode::kFrozen) why += "the node is frozen; ";
    for (const size_t index : state.group->pools) {
      if (index != state.group->pools.front()) why += "; ";
      why += pools_[index].pool.Describe();
    }
  }
  return why;
}

// Returns what is wrong with what the cloud gave it and it cannot use.
std::string Fleet::ProblemOf(const NodeRecord& record) const {
  std::string why;
  for (const auto& [name, wanted] : record.wanted) {
    if (!wanted.given) continue;
    why += fmt::format("{}the cloud gave it {} as {}, which {}", why.empty() ? "" : "; ",
                       wanted.given->ToString(), name, wanted.problem);
  }
  return why;
}

void Fleet::CountWanted(const WantedEntry& wanted, bool add) {
  const size_t index = PoolIndexOf(wanted.pool);
  if (index >= pools_.size()) return;  // It was found on the NIC, or its pool is no more.
  PoolEntry& entry = pools_[index];
  AddressCounts counts;
  counts.Add(wanted);
  if (add) {
    entry.asked += wanted.size();
    entry.counts += counts;
  } else {
    entry.asked -= wanted.size();
    entry.counts -= counts;
  }
}

void Fleet::Count(const Configuration& configuration, bool add) {
  const size_t index = PoolIndexOf(configuration.pool);
  CHECK(index < pools_.size(), "a configuration is of a pool there is");
  if (add) {
    pools_[index].counts.Add(configuration);
  } else {
    pools_[index].counts -= CountAddresses(configuration);
  }
}

void Fleet::SetState(Configuration& configuration, AddressState state, absl::Time now) {
  Count(configuration, false);
  configuration.state = state;
  configuration.since = now;
  Count(configuration, true);
}

void Fleet::CheckInvariants() const {
  std::vector<AddressCounts> counts(pools_.size());
  std::vector<uint64_t> held(pools_.size());
  std::vector<uint64_t> asked(pools_.size());
  for (const auto& [key, record] : nodes_) {
    for (const auto& [base, configuration] : record.configurations) {
      CHECK(base == configuration.range.base(), "a configuration is found by its first address");
      CHECK(configuration.slots.size() == configuration.range.size(), "one slot an address");
      const size_t index = PoolIndexOf(configuration.pool);
      CHECK(index < pools_.size(), "a configuration is of a pool there is");
      CHECK(pools_[index].pool.OwnerOf(base) == &record, "the pool knows who holds a unit");
      for (const Slot& slot : configuration.slots) {
        CHECK((slot.use == Use::kInUse) == (slot.lessee != nullptr),
              "a lessee exactly when assigned");
      }
      counts[index].Add(configuration);
      held[index] += configuration.slots.size();
    }
    for (const auto& [name, wanted] : record.wanted) {
      const size_t index = PoolIndexOf(wanted.pool);
      if (index >= pools_.size()) continue;
      counts[index].Add(wanted);
      asked[index] += wanted.size();
    }
  }
  for (size_t i = 0; i < pools_.size(); ++i) {
    CHECK(pools_[i].counts == counts[i], "the counts are what counting gives");
    CHECK(pools_[i].pool.held() == held[i], "a pool holds just what the records hold");
    CHECK(pools_[i].asked == asked[i], "a pool knows what the cloud has yet to choose from it");
  }
}

}  // namespace spoke::ipam
