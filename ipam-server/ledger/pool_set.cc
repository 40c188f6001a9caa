#include "ipam-server/ledger/pool_set.h"

#include <algorithm>
#include <iterator>
#include <utility>

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

// `pools`: a PoolSet, whether it may be changed or not.
template <typename Pools>
auto FindOffering(Pools& pools, const ip::Address& address) {
  const auto it = std::find_if(pools.begin(), pools.end(), [&](const PoolEntry& candidate) {
    return candidate.pool.UnitOf(address).has_value();
  });
  return it == pools.end() ? nullptr : &*it;
}

}  // namespace

PoolSet::PoolSet(std::vector<PoolEntry> entries, const TargetPolicy& target)
    : entries_(std::move(entries)), target_(target) {
  for (size_t i = 0; i < entries_.size(); ++i) index_.emplace(entries_[i].pool.spec().name, i);
}

size_t PoolSet::IndexOf(const std::string& name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? entries_.size() : it->second;
}

const PoolEntry* PoolSet::Covering(const ip::Address& address) const {
  const auto it = std::find_if(begin(), end(), [&](const PoolEntry& candidate) {
    return candidate.pool.spec().cidr.Contains(address);
  });
  return it == end() ? nullptr : &*it;
}

PoolEntry* PoolSet::Offering(const ip::Address& address) { return FindOffering(*this, address); }

const PoolEntry* PoolSet::Offering(const ip::Address& address) const {
  return FindOffering(*this, address);
}

const std::vector<PoolGroup>& PoolSet::GroupsFor(const std::map<std::string, std::string>& labels,
                                                 const std::string& vnet,
                                                 const std::vector<ip::Prefix>& subnets) const {
  const auto [it, inserted] = groups_.try_emplace({labels, vnet, subnets});
  if (!inserted) return it->second;
  std::vector<PoolGroup>& groups = it->second;
  for (size_t i = 0; i < entries_.size(); ++i) {
    const PoolSpec& spec = entries_[i].pool.spec();
    if (!Selects(spec, labels, vnet, subnets)) continue;
    auto group = std::find_if(groups.begin(), groups.end(), [&](const PoolGroup& candidate) {
      return candidate.family == spec.cidr.family() && candidate.namespaces == spec.namespaces;
    });
    if (group == groups.end()) {
      // The first pool of a group says how much a node holds of it.
      groups.push_back({.family = spec.cidr.family(),
                        .namespaces = spec.namespaces,
                        .target = spec.target.value_or(target_)});
      group = std::prev(groups.end());
    }
    group->pools.push_back(i);
  }
  return groups;
}

}  // namespace spoke::ipam
