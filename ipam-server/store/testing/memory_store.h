// A store that forgets with its process: for tests. Fails when told to.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "ipam-server/store/store.h"

namespace spoke::ipam {

class MemoryStore final : public Store {
 public:
  // A store with what Backup() wrote. Errors: kDataLoss (not a backup, or damaged); as
  // os::ReadFile().
  static absl::StatusOr<std::unique_ptr<MemoryStore>> Restore(const std::string& path);

  absl::StatusOr<std::optional<StoredRecord>> Get(std::string_view key) override;
  using Store::List;
  absl::Status List(const ListOptions& options, const Visit& visit) override;
  absl::StatusOr<std::vector<int64_t>> Commit(std::span<const CompareAndPut> batch) override;
  absl::StatusOr<BackupInfo> Backup(const std::string& path) override;
  absl::Status CheckIntegrity() override { return absl::OkStatus(); }
  StoreStats Stats() const override;
  std::string Describe() const override { return "memory"; }

  // Makes every later Commit() return `status` and change nothing, until an OK status is set.
  void FailCommits(absl::Status status) { FailNextCommits(-1, std::move(status)); }
  // The next `count` of them do.
  void FailNextCommits(int count, absl::Status status);
  // Makes later commits that write more than this fail, as on a nearly full disk; 0: none does.
  void LimitCommits(size_t bytes);
  // The next `count` commits happen, but answer kUnavailable, as after a lost connection.
  void LoseNextAnswers(int count);
  // Makes every later Get() and List() return `status`, until an OK status is set.
  void FailReads(absl::Status status);
  // A function called at the beginning of every later Commit(), on its thread: a slow disk is one
  // that waits here. Reads go on meanwhile.
  void BeforeCommit(std::function<void()> hook);

 private:
  using Records = std::map<std::string, StoredRecord, std::less<>>;

  absl::StatusOr<std::vector<int64_t>> Apply(std::span<const CompareAndPut> batch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  Records records_ ABSL_GUARDED_BY(mutex_);
  int64_t last_revision_ ABSL_GUARDED_BY(mutex_) = 0;
  StoreStats stats_ ABSL_GUARDED_BY(mutex_);
  int failing_commits_ ABSL_GUARDED_BY(mutex_) = 0;  // Below 0: all.
  absl::Status commit_fault_ ABSL_GUARDED_BY(mutex_);
  size_t most_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int lost_answers_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status read_fault_ ABSL_GUARDED_BY(mutex_);
  std::function<void()> before_commit_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spoke::ipam
