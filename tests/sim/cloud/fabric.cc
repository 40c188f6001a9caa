#include "tests/sim/cloud/fabric.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "tests/sim/mutant.h"

namespace spoke::sim {
namespace {

// Returns the ranges of `entries`, sorted.
std::vector<ip::Prefix> RangesOf(const std::vector<ipam::IpConfiguration>& entries) {
  std::vector<ip::Prefix> ranges;
  ranges.reserve(entries.size());
  for (const ipam::IpConfiguration& entry : entries) ranges.push_back(entry.range);
  std::sort(ranges.begin(), ranges.end());
  return ranges;
}

}  // namespace

void Fabric::AddVm(const ipam::NodeKey& node, const ip::MacAddress& mac, std::string instance) {
  nics_[node.vm_id].holds = {
      .node = node, .nic_mac = mac, .configurations = {}, .instance = std::move(instance)};
}

void Fabric::RemoveVm(const std::string& vm) {
  const auto nic = nics_.find(vm);
  if (nic == nics_.end()) return;
  for (const ipam::IpConfiguration& entry : nic->second.holds.configurations) {
    holders_.erase(entry.range.base());
  }
  nics_.erase(nic);
}

bool Fabric::Has(const std::string& vm, const ip::Address& address) const {
  const ipam::NicAddresses* nic = Find(vm);
  return nic != nullptr && std::any_of(nic->configurations.begin(), nic->configurations.end(),
                                       [&](const auto& e) { return e.range.Contains(address); });
}

const ipam::NicAddresses* Fabric::Find(const std::string& vm) const {
  const auto nic = nics_.find(vm);
  return nic == nics_.end() ? nullptr : &nic->second.holds;
}

absl::StatusOr<ipam::NicAddresses> Fabric::Apply(const ipam::NicRequest& desired, uint64_t order) {
  const auto it = nics_.find(desired.node.vm_id);
  if (it == nics_.end()) return absl::NotFoundError("there is no such VM");
  Nic& nic = it->second;
  if (order < nic.order && !Mutant(39)) return absl::AbortedError("the NIC has changed since");
  nic.order = order;
  Change(it->first, desired.Configured().configurations);
  return nic.holds;
}

void Fabric::Change(const std::string& vm, std::vector<ipam::IpConfiguration> configurations) {
  for (const ip::Prefix& range : Replace(vm, std::move(configurations))) {
    if (on_detached_) on_detached_(vm, range);
  }
}

// Returns what has left the NIC, which must be there, sorted.
std::vector<ip::Prefix> Fabric::Replace(const std::string& vm,
                                        std::vector<ipam::IpConfiguration> next) {
  Nic& nic = nics_.at(vm);
  std::erase_if(next, [&](const ipam::IpConfiguration& entry) {
    return holders_.try_emplace(entry.range.base(), vm).first->second != vm;
  });
  std::sort(next.begin(), next.end());
  const std::vector<ip::Prefix> before = RangesOf(nic.holds.configurations);
  const std::vector<ip::Prefix> after = RangesOf(next);
  std::vector<ip::Prefix> lost;
  std::set_difference(before.begin(), before.end(), after.begin(), after.end(),
                      std::back_inserter(lost));
  nic.holds.configurations = std::move(next);
  for (const ip::Prefix& range : lost) holders_.erase(range.base());
  return lost;
}

std::vector<ip::Prefix> Fabric::Overwrite(const std::string& vm,
                                          std::vector<ipam::IpConfiguration> configurations) {
  const auto nic = nics_.find(vm);
  if (nic == nics_.end()) return {};
  nic->second.order = NextOrder();
  return Replace(vm, std::move(configurations));
}

std::vector<ipam::NicAddresses> Fabric::List() const {
  std::vector<ipam::NicAddresses> all;
  all.reserve(nics_.size());
  for (const auto& [vm, nic] : nics_) all.push_back(nic.holds);
  return all;
}

}  // namespace spoke::sim
