#include "tests/bench/stalls/failing_store.h"

namespace spoke::stalls {

absl::StatusOr<std::optional<ipam::StoredRecord>> FailingStore::Get(std::string_view key) {
  return store_->Get(key);
}

absl::Status FailingStore::List(const ipam::ListOptions& options, const Visit& visit) {
  return store_->List(options, visit);
}

absl::StatusOr<std::vector<int64_t>> FailingStore::Commit(
    std::span<const ipam::CompareAndPut> batch) {
  if (!batch.empty() && fails_.exchange(false)) {
    return absl::UnavailableError("the benchmark lets this commit fail");
  }
  return store_->Commit(batch);
}

absl::StatusOr<ipam::BackupInfo> FailingStore::Backup(const std::string& path) {
  return store_->Backup(path);
}

absl::Status FailingStore::CheckIntegrity() { return store_->CheckIntegrity(); }

ipam::StoreStats FailingStore::Stats() const { return store_->Stats(); }

std::string FailingStore::Describe() const { return store_->Describe(); }

}  // namespace spoke::stalls
