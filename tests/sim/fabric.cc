#include "tests/sim/fabric.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"
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

void Fabric::AddVm(const ipam::NodeKey& node, const ip::MacAddress& mac) {
  nics_[node.vm_id].holds = {.node = node, .nic_mac = mac, .configurations = {}};
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
  for (const ip::Prefix& range : Replace(it->first, desired.Configured().configurations)) {
    if (on_detached_) on_detached_(it->first, range);
  }
  return nic.holds;
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

// --- A server's client. ---

// One operation a NIC at a time; of the requests that wait for it the last decides.
void SimCloud::Request(ipam::NicRequest desired) {
  if (!edges_.life.Acts()) return;
  if (under_way_.contains(desired.node)) {
    waiting_.insert_or_assign(desired.node, std::move(desired));
    return;
  }
  Send(std::move(desired));
}

void SimCloud::Send(ipam::NicRequest desired) {
  under_way_.insert(desired.node);
  if (!edges_.leads() && !Mutant(38)) {
    edges_.trace.Count("cloud not asked by who may not lead");
    edges_.schedule.After(absl::Seconds(1), [this, alive = alive_, node = desired.node] {
      if (*alive) Finish(node, absl::UnavailableError("another server may lead"));
    });
    return;
  }
  const uint64_t order = edges_.fabric.NextOrder();
  const absl::Duration there = edges_.random.Between(edges_.faults.least, edges_.faults.most);
  const absl::Duration back = edges_.random.Between(absl::Milliseconds(10), edges_.faults.least);
  const bool refused = edges_.random.Chance(edges_.faults.refused);
  const bool lost = edges_.random.Chance(edges_.faults.answers_lost);
  // What has been sent is carried out though its sender may be dead by then.
  edges_.schedule.After(
      there, [this, alive = alive_, &schedule = edges_.schedule, &fabric = edges_.fabric,
              &trace = edges_.trace, order, back, refused, lost, desired = std::move(desired)] {
        absl::StatusOr<ipam::NicAddresses> result = absl::UnavailableError("the cloud refuses");
        if (refused) {
          trace.Count("cloud refused");
        } else {
          result = fabric.Apply(desired, order);
          trace.Say("cloud vm={} entries={} {}", desired.node.vm_id, desired.configurations.size(),
                    base::MessageOf(result.status()));
          if (!*alive) trace.Count("cloud carried out for a dead server");
          if (absl::IsNotFound(result.status())) {
            trace.Count("cloud asked for a machine that is gone");
          }
        }
        if (lost && result.ok()) {
          trace.Count("cloud answer lost");
          result = absl::UnavailableError("the cloud's answer was lost");
        }
        schedule.After(back, [this, alive, node = desired.node, result = std::move(result)] {
          if (*alive) Finish(node, result);
        });
      });
}

void SimCloud::Finish(const ipam::NodeKey& node, absl::StatusOr<ipam::NicAddresses> result) {
  if (edges_.schedule.now() < edges_.life.still_until()) {
    edges_.schedule.At(edges_.life.still_until(), [this, alive = alive_, node, result] {
      if (*alive) Finish(node, result);
    });
    return;
  }
  under_way_.erase(node);
  if (auto next = waiting_.extract(node); !next.empty()) Send(std::move(next.mapped()));
  answer_(node, std::move(result));
}

std::optional<ipam::CloudForecast> SimCloud::ForecastOf(const ipam::NodeKey& node) const {
  if (!under_way_.contains(node)) return std::nullopt;
  return ipam::CloudForecast{.eta = edges_.schedule.now() + edges_.faults.most,
                             .waits_for = "the cloud"};
}

void SimCloud::List(ipam::CloudListed listed) {
  absl::Duration wait = edges_.random.Between(edges_.faults.least, edges_.faults.most);
  if (edges_.random.Chance(edges_.faults.listings_stale)) {
    wait += absl::Minutes(1);
    edges_.trace.Count("stale listing");
  }
  ipam::CloudListing listing = edges_.fabric.List();
  if (edges_.random.Chance(edges_.faults.listings_failed)) {
    listing = absl::UnavailableError("the cloud does not list");
  }
  edges_.schedule.After(
      wait, [alive = alive_, listed = std::move(listed), listing = std::move(listing)]() mutable {
        if (*alive) listed(std::move(listing));
      });
}

}  // namespace spoke::sim
