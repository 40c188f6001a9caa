// A cloud in memory, for tests: refuses when told to, and counts. It takes the addresses it is
// told, or chooses them itself.
#pragma once

#include <map>
#include <optional>
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
  bool ChoosesAddresses() const override;
  std::string Describe() const override { return "fake"; }

  // Makes it choose: the lowest of `subnet` that no NIC has, from the fourth on.
  void ChooseFrom(const ip::Prefix& subnet);
  // Puts an entry on a NIC that nobody asked for.
  void Plant(const NicRequest& nic, const IpConfiguration& entry);
  // Makes every later Apply() return `status` and change nothing, until an OK status is set.
  void FailApply(absl::Status status);
  // The VM is gone, and its NIC with it.
  void Remove(const NodeKey& node);
  int applied() const;

 private:
  NicAddresses Choose(const NicRequest& desired) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ip::Prefix LowestFree(const WantedConfiguration& wanted) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  std::map<NodeKey, NicAddresses> nics_ ABSL_GUARDED_BY(mutex_);
  absl::Status fault_ ABSL_GUARDED_BY(mutex_);
  std::optional<ip::Prefix> subnet_ ABSL_GUARDED_BY(mutex_);
  int applied_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace spoke::ipam
