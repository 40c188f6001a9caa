// A store whose next commit fails when it is told so.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ipam-server/store/store.h"

namespace spoke::stalls {

// The store. Thread-safe. It does what the store behind it does in everything else.
class FailingStore final : public ipam::Store {
 public:
  explicit FailingStore(std::unique_ptr<ipam::Store> store) : store_(std::move(store)) {}

  // Makes the next commit of records kUnavailable, so that it does not happen.
  void FailNext() { fails_ = true; }

  absl::StatusOr<std::optional<ipam::StoredRecord>> Get(std::string_view key) override;
  absl::Status List(const ipam::ListOptions& options, const Visit& visit) override;
  using Store::List;
  absl::StatusOr<std::vector<int64_t>> Commit(std::span<const ipam::CompareAndPut> batch) override;
  absl::StatusOr<ipam::BackupInfo> Backup(const std::string& path) override;
  absl::Status CheckIntegrity() override;
  ipam::StoreStats Stats() const override;
  std::string Describe() const override;

 private:
  const std::unique_ptr<ipam::Store> store_;
  std::atomic<bool> fails_ = false;
};

}  // namespace spoke::stalls
