#include "ipam-server/cloud/fake_cloud.h"

#include <utility>

namespace spoke::ipam {

absl::StatusOr<NicAddresses> FakeCloud::Apply(const NicRequest& desired) {
  absl::MutexLock lock(&mutex_);
  if (!fault_.ok()) return fault_;
  ++applied_;
  NicAddresses nic = desired.Configured();
  nics_[desired.node] = nic;
  return nic;
}

absl::StatusOr<std::vector<NicAddresses>> FakeCloud::List() {
  absl::MutexLock lock(&mutex_);
  std::vector<NicAddresses> nics;
  for (const auto& [node, nic] : nics_) {
    nics.push_back(nic);
  }
  return nics;
}

void FakeCloud::Remove(const NodeKey& node) {
  absl::MutexLock lock(&mutex_);
  nics_.erase(node);
}

void FakeCloud::FailApply(absl::Status status) {
  absl::MutexLock lock(&mutex_);
  fault_ = std::move(status);
}

int FakeCloud::applied() const {
  absl::MutexLock lock(&mutex_);
  return applied_;
}

}  // namespace spoke::ipam
