#include "netagent/fastpath/fast_pods.h"

#include <algorithm>
#include <utility>

#include "lib/base/status.h"

namespace spoke::netagent {
namespace {

// The number of looks for each sweep: a sweep passes over all pairs, of which there may be tens of
// thousands.
constexpr uint64_t kLooksPerSweep = 30;

bool IsOf(const FastPodReading& reading, const TrafficPod& pod) {
  return reading.host_index == pod.host_index &&
         std::is_permutation(reading.addresses.begin(), reading.addresses.end(),
                             pod.addresses.begin(), pod.addresses.end());
}

}  // namespace

bool FastPods::IsFast(const std::string& host_link) const {
  const auto at = known_.find(host_link);
  return at != known_.end() && at->second.way == PodWay::kFast;
}

absl::Status FastPods::TakeOver(const FastPathTable& table, const Pods& live) {
  known_.clear();
  if (path_ == nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(const bool is_there, path_->IsThere());
  if (!is_there) return absl::OkStatus();
  RETURN_IF_ERROR(path_->Configure(table));
  loaded_ = true;
  ASSIGN_OR_RETURN(const auto readings, path_->Read());
  for (const FastPodReading& reading : readings) {
    if (reading.ended) continue;
    const auto pod = std::find_if(live.begin(), live.end(), [&](const auto& candidate) {
      return IsOf(reading, candidate.second);
    });
    if (pod == live.end()) {
      RETURN_IF_ERROR(path_->EndPod(reading.id));
    } else {
      Known& known = known_[pod->first];
      known = {.id = reading.id, .way = reading.way, .mac = reading.pod_mac};
      if (known.mac == pod->second.pod_mac) continue;
      // It may have changed, or the link is another pod's of the same index: any will do until
      // SetMac().
      known.mac = known.mac ? std::nullopt : pod->second.pod_mac;
      RETURN_IF_ERROR(path_->Change(known.id, known.way, known.mac));
    }
  }
  return absl::OkStatus();
}

absl::Status FastPods::Prepare(const std::string& uplink) {
  if (path_ == nullptr) return absl::UnimplementedError("nothing that could do it");
  if (loaded_) return absl::OkStatus();
  RETURN_IF_ERROR(path_->Configure({.uplink = uplink, .hops = {}}));
  loaded_ = true;
  return absl::OkStatus();
}

absl::Status FastPods::SetLocal(std::set<ip::Address> local, const Pods& live) {
  for (const auto& [link, pod] : live) local.insert(pod.addresses.begin(), pod.addresses.end());
  return path_->SetLocal(local);
}

absl::Status FastPods::Put(const FastPathTable& table, const std::set<ip::Address>& local,
                           const Pods& live,
                           const std::function<bool(const TrafficPod&)>& is_fast) {
  if (path_ == nullptr || !loaded_) return absl::OkStatus();
  const bool was_on = std::exchange(on_, !table.uplink.empty());
  if (on_ && !was_on && (!tracks_ || tracks_())) {
    for (const auto& [link, pod] : live) {
      if (!IsFast(link)) too_old_.insert(link);
    }
  }
  // This comes before the hops: no packet for one of these is to leave by them.
  RETURN_IF_ERROR(SetLocal(local, live));
  RETURN_IF_ERROR(path_->Configure(table));
  for (const auto& [link, pod] : live) {
    const bool fast = on_ && !too_old_.contains(link) && is_fast(pod);
    RETURN_IF_ERROR(PutPod(pod, fast ? PodWay::kFast : PodWay::kOrdinary));
  }
  return absl::OkStatus();
}

absl::Status FastPods::PutPod(const TrafficPod& pod, PodWay way) {
  const auto at = known_.find(pod.host_link);
  if (at != known_.end()) {
    if (at->second.way == way) return absl::OkStatus();
    RETURN_IF_ERROR(path_->Change(at->second.id, way, at->second.mac));
    at->second.way = way;
    return absl::OkStatus();
  }
  if (pod.addresses.empty()) return absl::OkStatus();  // The link was adopted.
  const auto id = path_->AddPod(pod, way);
  if (id.ok()) {
    known_[pod.host_link] = {.id = *id, .way = way, .mac = pod.pod_mac};
    return absl::OkStatus();
  }
  absl::Status status = id.status();
  status.Update(path_->AddLocal(pod.addresses));
  log_.Warn("fast_path_refused", {{"link", pod.host_link}, {"error", status}});
  return absl::OkStatus();  // The refusal does not stop the others.
}

void FastPods::Add(const TrafficPod& pod, bool is_fast) {
  if (path_ == nullptr || !loaded_) return;
  const absl::Status status = PutPod(pod, on_ && is_fast ? PodWay::kFast : PodWay::kOrdinary);
  if (!status.ok()) {
    log_.Warn("fast_path_refused", {{"link", pod.host_link}, {"error", status}});
  }
}

void FastPods::SetMac(const std::string& host_link, const ip::MacAddress& mac) {
  const auto at = known_.find(host_link);
  if (at == known_.end() || at->second.mac == mac) return;
  if (const absl::Status status = path_->Change(at->second.id, at->second.way, mac); status.ok()) {
    at->second.mac = mac;
  } else {
    log_.Warn("fast_path_refused", {{"link", host_link}, {"error", status}});
  }
}

absl::Status FastPods::End(const std::string& host_link) {
  too_old_.erase(host_link);
  const auto at = known_.find(host_link);
  if (at == known_.end()) return absl::OkStatus();
  RETURN_IF_ERROR(path_->EndPod(at->second.id));
  known_.erase(at);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<RefusedCount>> FastPods::ReadRefused() {
  if (path_ == nullptr || !loaded_) return std::vector<RefusedCount>();
  return path_->ReadRefused();
}

absl::StatusOr<std::vector<FastPodReading>> FastPods::Read(std::set<uint64_t>& folded) {
  if (path_ == nullptr || !loaded_) {
    folded.clear();
    return std::vector<FastPodReading>();
  }
  ASSIGN_OR_RETURN(std::vector<FastPodReading> readings, path_->Read());
  std::set<uint64_t> still;
  const auto counted_elsewhere = [&](const FastPodReading& reading) {
    if (!reading.ended || !folded.contains(reading.id)) return false;
    if (!path_->ForgetPod(reading.id).ok()) still.insert(reading.id);
    return true;
  };
  readings.erase(std::remove_if(readings.begin(), readings.end(), counted_elsewhere),
                 readings.end());
  folded = std::move(still);
  return readings;
}

void FastPods::Forget(const std::vector<uint64_t>& ids) {
  // One that fails is forgotten at the next Read().
  for (const uint64_t id : ids) path_->ForgetPod(id).IgnoreError();
}

absl::StatusOr<size_t> FastPods::Look(const std::set<ip::Address>& local, const Pods& live) {
  if (path_ == nullptr || !loaded_) return size_t{0};
  RETURN_IF_ERROR(SetLocal(local, live));
  if (++looks_ % kLooksPerSweep == 0) RETURN_IF_ERROR(path_->SweepTranslated());
  return path_->Repair();
}

}  // namespace spoke::netagent
