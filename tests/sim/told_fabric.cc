#include "tests/sim/told_fabric.h"

#include <algorithm>
#include <set>
#include <utility>

#include "fmt/core.h"

namespace spoke::sim {
namespace {

std::set<ip::Address> AddressesOf(const ipam::NicAddresses& nic) {
  std::set<ip::Address> addresses;
  for (const ipam::IpConfiguration& entry : nic.configurations) {
    for (uint64_t i = 0; i < entry.range.size(); ++i) {
      addresses.insert(ip::Advance(entry.range.base(), i));
    }
  }
  return addresses;
}

}  // namespace

std::optional<CloudMachine> ToldFabric::AddMachine(const std::string& node, uint64_t number) {
  CloudMachine machine{.key = {node, fmt::format("{}-vm{}", node, number)}};
  machine.mac.octets = {
      0x0A, 0, 0, 0, static_cast<uint8_t>(number >> 8U), static_cast<uint8_t>(number)};
  machines_[machine.key] = {.node = machine.key, .nic_mac = machine.mac};
  return machine;
}

void ToldFabric::RemoveMachine(const NodeKey& machine) {
  machines_.erase(machine);
  basis_.judge.MachineGone(machine);
}

std::unique_ptr<ipam::Cloud> ToldFabric::NewClient(CloudClientEdges edges) {
  return std::make_unique<ToldCloud>(basis_, *this, std::move(edges));
}

absl::StatusOr<ipam::NicAddresses> ToldFabric::Apply(const ipam::NicRequest& desired) {
  const auto it = machines_.find(desired.node);
  if (it == machines_.end()) {
    return absl::FailedPreconditionError("there is no machine " + desired.node.vm_id);
  }
  const std::set<ip::Address> before = AddressesOf(it->second);
  it->second = desired.Configured();
  const std::set<ip::Address> after = AddressesOf(it->second);
  for (const ip::Address& address : before) {
    if (after.contains(address)) continue;
    basis_.trace.Tell("fabric", "takes {} off {}", address.ToString(), desired.node.vm_id);
    basis_.judge.NicLoses(desired.node, address);
  }
  for (const ip::Address& address : after) {
    if (before.contains(address)) continue;
    basis_.trace.Tell("fabric", "puts {} on {}", address.ToString(), desired.node.vm_id);
    basis_.judge.NicGets(desired.node, address);
  }
  return it->second;
}

std::vector<ipam::NicAddresses> ToldFabric::List() const {
  std::vector<ipam::NicAddresses> nics;
  for (const auto& [machine, nic] : machines_) nics.push_back(nic);
  return nics;
}

absl::Duration ToldCloud::Delay() {
  if (basis_.random.Chance(0.05 * basis_.faults)) {
    basis_.Happened(Fault::kCloudSlow, edges_.process.who());
    return basis_.random.Between(absl::Seconds(5), absl::Seconds(90));
  }
  return basis_.random.Between(absl::Milliseconds(20), absl::Seconds(3));
}

void ToldCloud::Request(ipam::NicRequest desired) {
  const NodeKey node = desired.node;
  waiting_.insert_or_assign(node, std::move(desired));
  if (!under_way_[node]) BeginNext(node);
}

void ToldCloud::BeginNext(const NodeKey& node) {
  const auto next = waiting_.extract(node);
  under_way_[node] = !next.empty();
  if (next.empty()) return;
  edges_.process.After(Delay(), [this, node, request = next.mapped()] { CarryOut(node, request); });
}

void ToldCloud::CarryOut(const NodeKey& node, const ipam::NicRequest& request) {
  // What a former leader has on its way is given up.
  const bool leads = edges_.margin() > absl::ZeroDuration() || basis_.Has(Mutant::kMarginZero);
  absl::StatusOr<ipam::NicAddresses> result = absl::UnavailableError("this server may not lead");
  if (leads && basis_.random.Chance(0.05 * basis_.faults)) {
    basis_.Happened(Fault::kCloudRefuses, edges_.process.who());
    result = absl::UnavailableError("the cloud answers 503");
  } else if (leads) {
    edges_.process.Step("call of the cloud");
    result = fabric_.Apply(request);
    edges_.process.Step("answer of the cloud");
    if (result.ok() && basis_.random.Chance(0.03 * basis_.faults)) {
      basis_.Happened(Fault::kCloudAnswerLost, edges_.process.who());
      result = absl::UnavailableError("the cloud's answer was lost");
    }
  }
  edges_.answer(node, std::move(result));
  BeginNext(node);
}

void ToldCloud::List(ipam::CloudListed listed) {
  std::vector<ipam::NicAddresses> nics = fabric_.List();
  absl::Duration delay = basis_.random.Between(absl::Milliseconds(50), absl::Seconds(1));
  if (basis_.random.Chance(0.1 * basis_.faults)) {
    basis_.Happened(Fault::kListingStale, edges_.process.who());
    delay = basis_.random.Between(absl::Seconds(5), absl::Seconds(50));
  }
  const bool is_short = !was_short_ && !nics.empty() && basis_.random.Chance(0.05 * basis_.faults);
  was_short_ = is_short;
  if (is_short) {
    basis_.Happened(Fault::kListingShort, edges_.process.who());
    nics.erase(nics.begin() + static_cast<int64_t>(basis_.random.Below(nics.size())));
  }
  if (basis_.Has(Mutant::kSilentNodeIsGone)) {
    std::erase_if(nics, [&](const auto& nic) { return !edges_.has_session(nic.node); });
  }
  edges_.process.After(delay,
                       [listed = std::move(listed), nics = std::move(nics)] { listed(nics); });
}

}  // namespace spoke::sim
