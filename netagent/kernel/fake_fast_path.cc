#include "netagent/kernel/fake_fast_path.h"

#include <algorithm>
#include <utility>

#include "lib/base/status.h"

namespace spoke::netagent {

absl::StatusOr<bool> FakeFastPath::IsThere() {
  RETURN_IF_ERROR(broken_);
  return table_.has_value();
}

absl::Status FakeFastPath::Configure(const FastPathTable& table) {
  RETURN_IF_ERROR(broken_);
  if (std::find(devices_.begin(), devices_.end(), table.uplink) == devices_.end()) {
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

absl::StatusOr<uint64_t> FakeFastPath::AddPod(const TrafficPod& pod) {
  RETURN_IF_ERROR(broken_);
  if (!table_) return absl::FailedPreconditionError("no table yet");
  for (const auto& [id, other] : pods_) {
    const bool shared = std::any_of(
        pod.addresses.begin(), pod.addresses.end(), [&other = other](const ip::Address& address) {
          return std::find(other.addresses.begin(), other.addresses.end(), address) !=
                 other.addresses.end();
        });
    if (!other.ended && shared) return absl::AlreadyExistsError("an address is another pod's");
  }
  if (pods_.size() >= kMaxFastPods) return absl::ResourceExhaustedError("too many pods");
  const uint64_t id = ++last_id_;
  std::vector<ip::Address> addresses = pod.addresses;
  std::sort(addresses.begin(), addresses.end());
  pods_.emplace(
      id,
      FastPodReading{
          .id = id, .host_index = pod.host_index, .addresses = std::move(addresses), .counts = {}});
  return id;
}

absl::Status FakeFastPath::EndPod(uint64_t id) {
  RETURN_IF_ERROR(broken_);
  const auto at = pods_.find(id);
  if (at != pods_.end()) at->second.ended = true;
  return absl::OkStatus();
}

absl::Status FakeFastPath::ForgetPod(uint64_t id) {
  RETURN_IF_ERROR(broken_);
  if (keep_) return absl::InternalError("not now");
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
  table_.reset();
  return absl::OkStatus();
}

}  // namespace spoke::netagent
