#include "ipam-server/store/testing/memory_store.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "fmt/core.h"
#include "ipam-server/store/backup_file.h"
#include "ipam-server/store/record_codec.h"
#include "lib/base/status.h"
#include "lib/os/file.h"

namespace spoke::ipam {
namespace {

// A backup is this line and the last revision, then "<key bytes> <revision> <value bytes>\n", the
// key and the value for each record, then "end\n".
constexpr std::string_view kBackupHeader = "spoke memory store 1\n";
constexpr std::string_view kBackupEnd = "end\n";
constexpr size_t kMaxBackupBytes = size_t{1} << 30;

class BackupReader {
 public:
  explicit BackupReader(std::string_view text) : rest_(text) {}

  bool Take(std::string_view expected) {
    if (!rest_.starts_with(expected)) return false;
    rest_.remove_prefix(expected.size());
    return true;
  }
  // A number and the character after it.
  bool TakeNumber(char after, int64_t& number) {
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    if (error != std::errc() || number < 0) return false;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return Take({&after, 1});
  }
  bool TakeBytes(int64_t count, std::string& bytes) {
    if (static_cast<size_t>(count) > rest_.size()) return false;
    bytes = rest_.substr(0, static_cast<size_t>(count));
    rest_.remove_prefix(static_cast<size_t>(count));
    return true;
  }
  bool empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

}  // namespace

absl::StatusOr<std::optional<StoredRecord>> MemoryStore::Get(std::string_view key) {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(read_fault_);
  const auto it = records_.find(key);
  if (it == records_.end()) return std::nullopt;
  return it->second;
}

absl::Status MemoryStore::List(const ListOptions& options, const Visit& visit) {
  std::vector<std::pair<std::string, StoredRecord>> snapshot;
  {
    absl::MutexLock lock(&mutex_);
    RETURN_IF_ERROR(read_fault_);
    for (auto it = records_.lower_bound(options.range.first);
         it != records_.end() && options.range.Contains(it->first); ++it) {
      snapshot.emplace_back(*it);
    }
  }
  if (options.descending) std::reverse(snapshot.begin(), snapshot.end());
  if (options.limit != 0 && snapshot.size() > options.limit) snapshot.resize(options.limit);
  for (const auto& [key, record] : snapshot) visit(key, record);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> MemoryStore::Commit(std::span<const CompareAndPut> batch) {
  RETURN_IF_ERROR(ValidateBatch(batch));
  if (batch.empty()) return std::vector<int64_t>();
  std::function<void()> hook;
  {
    absl::MutexLock lock(&mutex_);
    hook = before_commit_;
  }
  if (hook) hook();
  absl::MutexLock lock(&mutex_);
  if (failing_commits_ != 0) {
    if (failing_commits_ > 0) --failing_commits_;
    ++stats_.failed_commits;
    return commit_fault_;
  }
  size_t bytes = 0;
  for (const CompareAndPut& put : batch) bytes += put.value ? put.value->size() : 0;
  if (most_bytes_ > 0 && bytes > most_bytes_) {
    ++stats_.failed_commits;
    return absl::ResourceExhaustedError("the disk is full");
  }
  ASSIGN_OR_RETURN(std::vector<int64_t> revisions, Apply(batch));
  if (lost_answers_ > 0) {
    --lost_answers_;
    ++stats_.failed_commits;
    return absl::UnavailableError("the answer to a commit was lost");
  }
  ++stats_.commits;
  stats_.records_written += static_cast<int64_t>(batch.size());
  return revisions;
}

absl::StatusOr<std::vector<int64_t>> MemoryStore::Apply(std::span<const CompareAndPut> batch) {
  for (const CompareAndPut& put : batch) {
    const auto it = records_.find(put.key);
    const int64_t found = it == records_.end() ? 0 : it->second.revision;
    if (found != put.expected) return Changed(put, found);
  }
  ++last_revision_;
  std::vector<int64_t> revisions;
  for (const CompareAndPut& put : batch) {
    if (put.value) {
      records_[put.key] = {*put.value, last_revision_};
    } else {
      records_.erase(put.key);
    }
    revisions.push_back(put.value ? last_revision_ : 0);
  }
  return revisions;
}

absl::StatusOr<BackupInfo> MemoryStore::Backup(const std::string& path) {
  Records records;
  int64_t last_revision = 0;
  {
    absl::MutexLock lock(&mutex_);
    records = records_;
    last_revision = last_revision_;
  }
  if (const auto own = records.find(kStoreKey); own != records.end()) {
    ASSIGN_OR_RETURN(own->second.value, MarkedAsBackup(own->second.value));
  }
  std::string text = fmt::format("{}{}\n", kBackupHeader, last_revision);
  for (const auto& [key, record] : records) {
    text += fmt::format("{} {} {}\n", key.size(), record.revision, record.value.size());
    text += key;
    text += record.value;
  }
  text += kBackupEnd;
  ASSIGN_OR_RETURN(BackupFile file, BackupFile::Create(path));
  RETURN_IF_ERROR(os::WriteFileAtomic(file.temporary(), text, os::Durability::kSurvivesPower));
  RETURN_IF_ERROR(file.Sync());
  ASSIGN_OR_RETURN(const auto copy, Restore(file.temporary()));
  {
    absl::MutexLock lock(&copy->mutex_);
    if (copy->records_ != records) return absl::DataLossError("the backup reads back differently");
  }
  ASSIGN_OR_RETURN(const int64_t bytes, file.Publish());
  return BackupInfo{.records = static_cast<int64_t>(records.size()), .bytes = bytes};
}

absl::StatusOr<std::unique_ptr<MemoryStore>> MemoryStore::Restore(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, os::ReadFile(path, kMaxBackupBytes));
  const absl::Status damaged = absl::DataLossError(path + " is not a whole backup");
  auto store = std::make_unique<MemoryStore>();
  absl::MutexLock lock(&store->mutex_);
  BackupReader reader(text);
  if (!reader.Take(kBackupHeader) || !reader.TakeNumber('\n', store->last_revision_)) {
    return damaged;
  }
  while (!reader.Take(kBackupEnd)) {
    int64_t key_bytes = 0;
    int64_t value_bytes = 0;
    std::string key;
    StoredRecord record;
    if (!reader.TakeNumber(' ', key_bytes) || !reader.TakeNumber(' ', record.revision) ||
        !reader.TakeNumber('\n', value_bytes) || !reader.TakeBytes(key_bytes, key) ||
        !reader.TakeBytes(value_bytes, record.value)) {
      return damaged;
    }
    store->records_.emplace(std::move(key), std::move(record));
  }
  if (!reader.empty()) return damaged;
  return store;
}

StoreStats MemoryStore::Stats() const {
  absl::MutexLock lock(&mutex_);
  return stats_;
}

void MemoryStore::FailNextCommits(int count, absl::Status status) {
  absl::MutexLock lock(&mutex_);
  failing_commits_ = status.ok() ? 0 : count;
  commit_fault_ = std::move(status);
}

void MemoryStore::LimitCommits(size_t bytes) {
  absl::MutexLock lock(&mutex_);
  most_bytes_ = bytes;
}

void MemoryStore::LoseNextAnswers(int count) {
  absl::MutexLock lock(&mutex_);
  lost_answers_ = count;
}

void MemoryStore::FailReads(absl::Status status) {
  absl::MutexLock lock(&mutex_);
  read_fault_ = std::move(status);
}

void MemoryStore::BeforeCommit(std::function<void()> hook) {
  absl::MutexLock lock(&mutex_);
  before_commit_ = std::move(hook);
}

}  // namespace spoke::ipam
