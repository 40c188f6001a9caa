#include "netagent/fastpath/testing/fake_fast_path.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "lib/base/status.h"

namespace spoke::netagent {

absl::StatusOr<bool> FakeFastPath::IsThere() {
  RETURN_IF_ERROR(broken_);
  return table_.has_value();
}

absl::Status FakeFastPath::Configure(const FastPathTable& table) {
  RETURN_IF_ERROR(broken_);
  if (!table.uplink.empty() &&
      std::find(devices_.begin(), devices_.end(), table.uplink) == devices_.end()) {
    return absl::NotFoundError("no such uplink");
  }
  std::map<ip::Family, size_t> count;
  for (const FastHop& hop : table.hops) {
    const ip::Family family = hop.first.family();
    if (hop.last.family() != family || (hop.gateway && hop.gateway->family() != family)) {
      return absl::InvalidArgumentError("two families in one hop");
    }
    if (++count[family] > kMaxFastHops) return absl::InvalidArgumentError("too many hops");
  }
  table_ = table;
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> FakeFastPath::AddPod(const TrafficPod& pod, PodWay way) {
  RETURN_IF_ERROR(broken_);
  if (!table_) return absl::FailedPreconditionError("no table yet");
  if (pod.addresses.empty()) return absl::InvalidArgumentError("no address");
  for (auto& [id, other] : pods_) {
    if (!other.ended && other.host_index == pod.host_index) RETURN_IF_ERROR(EndPod(id));
  }
  for (const auto& [id, other] : pods_) {
    const bool shared = std::any_of(
        pod.addresses.begin(), pod.addresses.end(), [&other = other](const ip::Address& address) {
          return std::find(other.addresses.begin(), other.addresses.end(), address) !=
                 other.addresses.end();
        });
    if (!other.ended && shared) return absl::AlreadyExistsError("an address is another pod's");
  }
  if (pods_.size() >= kMaxFastPods) return absl::ResourceExhaustedError("too many pods");
  for (const ip::Address& address : pod.addresses) ordinary_.erase(address);
  const uint64_t id = ++last_id_;
  std::vector<ip::Address> addresses = pod.addresses;
  std::sort(addresses.begin(), addresses.end());
  pods_.emplace(id, FastPodReading{.id = id,
                                   .way = way,
                                   .host_index = pod.host_index,
                                   .addresses = std::move(addresses),
                                   .pod_mac = pod.pod_mac,
                                   .counts = {}});
  return id;
}

absl::Status FakeFastPath::Change(uint64_t id, PodWay way,
                                  const std::optional<ip::MacAddress>& pod_mac) {
  RETURN_IF_ERROR(broken_);
  const auto at = pods_.find(id);
  if (at == pods_.end() || at->second.ended) return absl::NotFoundError("no such pod");
  at->second.way = way;
  at->second.pod_mac = pod_mac;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<RefusedCount>> FakeFastPath::ReadRefused() {
  RETURN_IF_ERROR(broken_);
  std::vector<RefusedCount> counts;
  for (size_t i = 0; i < refused_.size(); ++i) {
    counts.push_back({.reason = std::string(kRefusedReasons[i]), .packets = refused_[i]});
  }
  return counts;
}

absl::Status FakeFastPath::SetLocal(const std::set<ip::Address>& addresses) {
  RETURN_IF_ERROR(broken_);
  if (!table_) return absl::FailedPreconditionError("no table yet");
  std::map<ip::Family, size_t> count;
  std::set<ip::Address> fast;
  for (const auto& [id, pod] : pods_) {
    if (!pod.ended) fast.insert(pod.addresses.begin(), pod.addresses.end());
  }
  std::set<ip::Address> all = fast;
  all.insert(addresses.begin(), addresses.end());
  for (const ip::Address& address : all) {
    if (++count[address.family()] > kMaxFastPods) {
      return absl::ResourceExhaustedError("too many addresses");
    }
  }
  ordinary_.clear();
  std::set_difference(addresses.begin(), addresses.end(), fast.begin(), fast.end(),
                      std::inserter(ordinary_, ordinary_.end()));
  return absl::OkStatus();
}

absl::Status FakeFastPath::AddLocal(const std::vector<ip::Address>& addresses) {
  std::set<ip::Address> all = ordinary_;
  all.insert(addresses.begin(), addresses.end());
  return SetLocal(all);
}

std::set<ip::Address> FakeFastPath::ordinary() const {
  std::set<ip::Address> addresses = ordinary_;
  for (const auto& [id, pod] : pods_) {
    if (pod.ended || pod.way == PodWay::kFast) continue;
    addresses.insert(pod.addresses.begin(), pod.addresses.end());
  }
  return addresses;
}

absl::Status FakeFastPath::EndPod(uint64_t id) {
  RETURN_IF_ERROR(broken_);
  const auto at = pods_.find(id);
  if (at == pods_.end() || at->second.ended) return absl::OkStatus();
  at->second.ended = true;
  ordinary_.insert(at->second.addresses.begin(), at->second.addresses.end());
  return absl::OkStatus();
}

absl::Status FakeFastPath::ForgetPod(uint64_t id) {
  RETURN_IF_ERROR(broken_);
  if (keep_) return absl::InternalError("not now");
  RETURN_IF_ERROR(EndPod(id));
  pods_.erase(id);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<FastPodReading>> FakeFastPath::Read() {
  RETURN_IF_ERROR(broken_);
  std::vector<FastPodReading> readings;
  for (const auto& [id, pod] : pods_) readings.push_back(pod);
  return readings;
}

absl::StatusOr<size_t> FakeFastPath::Repair() {
  RETURN_IF_ERROR(broken_);
  return std::exchange(missing_, 0);
}

absl::Status FakeFastPath::Remove() {
  RETURN_IF_ERROR(broken_);
  pods_.clear();
  ordinary_.clear();
  table_.reset();
  return absl::OkStatus();
}

}  // namespace spoke::netagent
