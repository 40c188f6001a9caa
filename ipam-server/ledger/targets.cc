#include "ipam-server/ledger/targets.h"

#include <algorithm>
#include <map>
#include <set>

#include "fmt/core.h"
#include "ipam-server/pools/pool_plan.h"

namespace spoke::ipam {
namespace {

bool Names(const PoolGroup& group, const std::string& pod_namespace) {
  return std::find(group.namespaces.begin(), group.namespaces.end(), pod_namespace) !=
         group.namespaces.end();
}

uint32_t Left(const std::map<std::string, uint32_t>& served, const std::string& pod_namespace,
              uint32_t waiting) {
  const auto it = served.find(pod_namespace);
  return it == served.end() ? waiting : waiting - std::min(waiting, it->second);
}

// Adds waiting pods as agents choose pools: those that name the pod's namespace, or else those
// that name none, of each family. Where several groups name it an address of any will do, and
// since one of them may have none, each is to provide.
void AddWaiting(const Fleet& fleet, const NodeRecord& record, std::vector<GroupState>& states) {
  const auto demand = fleet.demands.find(record.key);
  if (demand == fleet.demands.end()) return;
  for (const auto& [pod_namespace, said] : demand->second.said.waiting) {
    const uint32_t waiting = Left(demand->second.served, pod_namespace, said);
    std::set<ip::Family> named;
    for (const GroupState& state : states) {
      if (Names(*state.group, pod_namespace)) named.insert(state.group->family);
    }
    for (GroupState& state : states) {
      const bool serves = named.contains(state.group->family) ? Names(*state.group, pod_namespace)
                                                              : state.group->namespaces.empty();
      if (serves) state.waiting += waiting;
    }
  }
}

// The cloud gave it while a pod of another node uses it: that may last for days.
bool IsHeldElsewhere(const Fleet& fleet, const NodeRecord& record, const WantedEntry& wanted) {
  if (!wanted.given) return false;
  const PoolEntry* const entry = fleet.ledger.pools().Offering(wanted.given->base());
  const NodeRecord* const holder =
      entry == nullptr ? nullptr : entry->pool.OwnerOf(wanted.given->base());
  return holder != nullptr && holder != &record;
}

}  // namespace

std::vector<GroupState> GroupStatesOf(const Fleet& fleet, const NodeRecord& record) {
  const PoolSet& pools = fleet.ledger.pools();
  const std::vector<PoolGroup>& groups = pools.GroupsFor(record);
  std::vector<GroupState> states;
  states.reserve(groups.size());
  for (const PoolGroup& group : groups) states.push_back({&group, 0, {}});
  const auto add = [&](const std::string& name, const AddressCounts& counts) {
    const size_t pool = pools.IndexOf(name);
    for (GroupState& state : states) {
      const std::vector<size_t>& of = state.group->pools;
      if (std::find(of.begin(), of.end(), pool) == of.end()) continue;
      state.counts += counts;
      break;
    }
  };
  // What no pod can get is none of what the node has: it is to have others in its place.
  for (const auto& [base, configuration] : record.configurations) {
    add(configuration.pool, CountOfUse(fleet, configuration));
  }
  for (const auto& [name, wanted] : record.wanted) {
    if (IsHeldElsewhere(fleet, record, wanted)) continue;
    add(wanted.pool, {.attaching = wanted.size()});
  }
  const uint32_t reserved = fleet.reservations.ReservedFor(record.key.name);
  AddWaiting(fleet, record, states);
  for (GroupState& state : states) {
    const bool general = state.group->namespaces.empty();
    const uint32_t used = static_cast<uint32_t>(state.counts.used()) + state.waiting;
    state.target = TargetAddresses(state.group->target, used, general ? reserved : 0);
  }
  return states;
}

bool IsLeaving(const NodeRecord& record) {
  return record.mode == NodeMode::kDraining || record.mode == NodeMode::kRetired;
}

bool IsEnding(const Fleet& fleet, const NodeKey& key) {
  const auto ending = fleet.ending.find(key);
  return ending != fleet.ending.end() && ending->second.believed;
}

bool IsLeaving(const Fleet& fleet, const NodeRecord& record) {
  return IsLeaving(record) || IsEnding(fleet, record.key);
}

uint64_t TargetOf(const Fleet& fleet, const NodeRecord& record) {
  if (IsLeaving(fleet, record)) return 0;
  uint64_t target = 0;
  for (const GroupState& state : GroupStatesOf(fleet, record)) target += state.target;
  return target;
}

bool IsShort(const Fleet& fleet, const NodeRecord& record) {
  if (IsLeaving(fleet, record)) return false;
  if (!ProblemOf(record).empty()) return true;
  const std::vector<GroupState> states = GroupStatesOf(fleet, record);
  return states.empty() || std::any_of(states.begin(), states.end(), [](const GroupState& state) {
           return state.counts.staying() < state.target;
         });
}

std::string ShortageOf(const Fleet& fleet, const NodeRecord& record) {
  if (IsLeaving(fleet, record)) return "";
  const std::vector<GroupState> states = GroupStatesOf(fleet, record);
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
      why += fleet.ledger.pools()[index].pool.Describe();
    }
  }
  return why;
}

std::string ProblemOf(const NodeRecord& record) {
  std::string why;
  for (const auto& [name, wanted] : record.wanted) {
    if (!wanted.given) continue;
    why += fmt::format("{}the cloud gave it {} as {}, which {}", why.empty() ? "" : "; ",
                       wanted.given->ToString(), name, wanted.problem);
  }
  return why;
}

}  // namespace spoke::ipam
