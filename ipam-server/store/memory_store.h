// A store that forgets with its process: for tests. Fails when told to.
#pragma once

#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "ipam-server/store/store.h"

namespace spoke::ipam {

class MemoryStore final : public Store {
 public:
  absl::StatusOr<std::optional<StoredRecord>> Get(std::string_view key) override;
  absl::Status List(std::string_view prefix, const Visit& visit) override;
  absl::StatusOr<std::vector<int64_t>> Commit(std::span<const CompareAndPut> batch) override;
  std::string Describe() const override { return "memory"; }

  // Every later Commit() returns `status` and changes nothing, until an OK status is set.
  void FailCommits(absl::Status status);

 private:
  mutable absl::Mutex mutex_;
  std::map<std::string, StoredRecord, std::less<>> records_ ABSL_GUARDED_BY(mutex_);
  int64_t last_revision_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status commit_fault_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spoke::ipam
