#include "ipam-server/cloud/testing/fake_cloud.h"

#include <algorithm>
#include <utility>

#include "lib/base/check.h"

namespace spoke::ipam {

void FakeCloud::Request(NicRequest desired) {
  {
    absl::MutexLock lock(&mutex_);
    if (stopped_) return;
    const auto same = std::find_if(waiting_.begin(), waiting_.end(), [&](const NicRequest& other) {
      return other.node == desired.node;
    });
    if (same != waiting_.end()) {
      *same = std::move(desired);
    } else {
      waiting_.push_back(std::move(desired));
    }
    if (holds_) return;
  }
  Answer();
}

void FakeCloud::Answer() {
  for (const NicRequest& request : TakeWaiting()) answer_(request.node, Apply(request));
}

void FakeCloud::Hold() {
  absl::MutexLock lock(&mutex_);
  holds_ = true;
}

std::vector<NicRequest> FakeCloud::waiting() const {
  absl::MutexLock lock(&mutex_);
  return waiting_;
}

std::vector<NicRequest> FakeCloud::TakeWaiting() {
  absl::MutexLock lock(&mutex_);
  return std::exchange(waiting_, {});
}

void FakeCloud::Stop() {
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
  waiting_.clear();
}

absl::StatusOr<NicAddresses> FakeCloud::Apply(const NicRequest& desired) {
  absl::MutexLock lock(&mutex_);
  if (!fault_.ok()) return fault_;
  ++applied_;
  NicAddresses nic = subnet_ ? Choose(desired) : desired.Configured();
  nics_[desired.node] = nic;
  return nic;
}

// What it is not told to take off stays, whoever put it there.
NicAddresses FakeCloud::Choose(const NicRequest& desired) {
  NicAddresses& nic = nics_[desired.node];
  nic.node = desired.node;
  nic.nic_mac = desired.nic_mac;
  nic.instance = desired.instance;
  const auto has = [&](const std::string& name) {
    return std::any_of(nic.configurations.begin(), nic.configurations.end(),
                       [&](const IpConfiguration& entry) { return entry.name == name; });
  };
  std::erase_if(nic.configurations, [&](const IpConfiguration& entry) {
    return std::find(desired.removing.begin(), desired.removing.end(), entry) !=
           desired.removing.end();
  });
  for (const WantedConfiguration& wanted : desired.wanted) {
    if (!has(wanted.name)) nic.configurations.push_back({wanted.name, LowestFree(wanted)});
  }
  std::sort(nic.configurations.begin(), nic.configurations.end());
  return nic;
}

namespace {

bool IsTaken(const std::map<NodeKey, NicAddresses>& nics, const ip::Prefix& range) {
  for (const auto& [node, nic] : nics) {
    for (const IpConfiguration& entry : nic.configurations) {
      if (entry.range.Overlaps(range)) return true;
    }
  }
  return false;
}

}  // namespace

ip::Prefix FakeCloud::LowestFree(const WantedConfiguration& wanted) const {
  const int bits = subnet_->base().bits();
  const uint64_t size = uint64_t{1} << static_cast<unsigned>(bits - wanted.prefix_length);
  // The first four of a subnet are never given, as in Azure.
  for (uint64_t offset = size == 1 ? 4 : size;; offset += size) {
    const ip::Address base = ip::Advance(subnet_->base(), offset);
    CHECK(subnet_->Contains(base), "tests give a subnet that is large enough");
    const ip::Prefix range = ip::Prefix::Of(base, wanted.prefix_length).value();
    if (!IsTaken(nics_, range)) return range;
  }
}

void FakeCloud::ChooseFrom(const ip::Prefix& subnet) {
  absl::MutexLock lock(&mutex_);
  subnet_ = subnet;
}

void FakeCloud::Plant(const NicRequest& nic, const IpConfiguration& entry) {
  absl::MutexLock lock(&mutex_);
  NicAddresses& held = nics_[nic.node];
  held.node = nic.node;
  held.nic_mac = nic.nic_mac;
  held.instance = nic.instance;
  held.configurations.push_back(entry);
  std::sort(held.configurations.begin(), held.configurations.end());
}

bool FakeCloud::ChoosesAddresses() const {
  absl::MutexLock lock(&mutex_);
  return subnet_.has_value();
}

void FakeCloud::List(CloudListed listed) {
  CloudListing listing = nics();
  {
    absl::MutexLock lock(&mutex_);
    if (stopped_) listing = absl::UnavailableError("the server stops");
  }
  listed(std::move(listing));
}

std::vector<NicAddresses> FakeCloud::nics() const {
  absl::MutexLock lock(&mutex_);
  std::vector<NicAddresses> nics;
  for (const auto& [node, nic] : nics_) nics.push_back(nic);
  return nics;
}

void FakeCloud::Remove(const NodeKey& node) {
  absl::MutexLock lock(&mutex_);
  nics_.erase(node);
}

void FakeCloud::FailRequests(absl::Status status) {
  absl::MutexLock lock(&mutex_);
  fault_ = std::move(status);
}

void FakeCloud::Forecast(CloudForecast forecast) {
  absl::MutexLock lock(&mutex_);
  forecast_ = std::move(forecast);
}

std::optional<CloudForecast> FakeCloud::ForecastOf(const NodeKey& /*node*/) const {
  absl::MutexLock lock(&mutex_);
  return forecast_;
}

int FakeCloud::applied() const {
  absl::MutexLock lock(&mutex_);
  return applied_;
}

}  // namespace spoke::ipam
