#include "ipam-server/store/memory_store.h"

#include <utility>

#include "lib/base/status.h"

namespace spoke::ipam {

absl::StatusOr<std::optional<StoredRecord>> MemoryStore::Get(std::string_view key) {
  absl::MutexLock lock(&mutex_);
  const auto it = records_.find(key);
  if (it == records_.end()) return std::nullopt;
  return it->second;
}

absl::Status MemoryStore::List(std::string_view prefix, const Visit& visit) {
  absl::MutexLock lock(&mutex_);
  for (auto it = records_.lower_bound(prefix); it != records_.end(); ++it) {
    if (!std::string_view(it->first).starts_with(prefix)) break;
    visit(it->first, it->second);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> MemoryStore::Commit(std::span<const CompareAndPut> batch) {
  RETURN_IF_ERROR(ValidateBatch(batch));
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(commit_fault_);
  for (const CompareAndPut& put : batch) {
    const auto it = records_.find(put.key);
    const int64_t stored = it == records_.end() ? 0 : it->second.revision;
    if (stored != put.expected) return absl::AbortedError("key " + put.key + " has changed");
  }
  std::vector<int64_t> revisions;
  for (const CompareAndPut& put : batch) {
    if (!put.value) {
      records_.erase(put.key);
      revisions.push_back(0);
      continue;
    }
    records_[put.key] = {*put.value, ++last_revision_};
    revisions.push_back(last_revision_);
  }
  return revisions;
}

void MemoryStore::FailCommits(absl::Status status) {
  absl::MutexLock lock(&mutex_);
  commit_fault_ = std::move(status);
}

}  // namespace spoke::ipam
