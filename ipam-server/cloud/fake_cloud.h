// A cloud in memory, for tests: refuses when told to, and counts.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "ipam-server/cloud/cloud.h"

namespace spoke::ipam {

class FakeCloud final : public Cloud {
 public:
  absl::StatusOr<NicAddresses> Apply(const NicRequest& desired) override;
  absl::StatusOr<std::vector<NicAddresses>> List() override;
  std::string Describe() const override { return "fake"; }

  // Every later Apply() returns `status` and changes nothing, until an OK status is set.
  void FailApply(absl::Status status);
  // The VM is gone, and its NIC with it.
  void Remove(const NodeKey& node);
  int applied() const;

 private:
  mutable absl::Mutex mutex_;
  std::map<NodeKey, NicAddresses> nics_ ABSL_GUARDED_BY(mutex_);
  absl::Status fault_ ABSL_GUARDED_BY(mutex_);
  int applied_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace spoke::ipam
