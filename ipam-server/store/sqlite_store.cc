#include "ipam-server/store/sqlite_store.h"

#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "fmt/core.h"
#include "ipam-server/store/record_digest.h"
#include "ipam-server/store/sqlite_backup.h"
#include "ipam-server/store/sqlite_checkpointer.h"
#include "ipam-server/store/sqlite_handle.h"
#include "ipam-server/store/sqlite_readers.h"
#include "ipam-server/store/sqlite_schema.h"
#include "ipam-server/store/store_lock.h"
#include "lib/base/status.h"
#include "lib/os/file.h"

namespace spoke::ipam {
namespace {

using sqlite::Statement;

// Reading the structure takes 0.05 s for 70 MB on a quiet machine, 1 s for 560 MB on a busy one.
constexpr int64_t kFullCheckBytes = int64_t{512} << 20;
constexpr int kPageBytes = 4096;
// The wait for what holds locks briefly: another connection of ours, or a reader that ends.
constexpr int kBusyTimeoutMs = 2000;

int64_t FileBytes(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? int64_t{info.st_size} : 0;
}

class SqliteStore final : public Store {
 public:
  SqliteStore(std::string path, StoreLock file_lock, sqlite::Database writer,
              const SqliteOptions& options)
      : path_(std::move(path)),
        file_lock_(std::move(file_lock)),
        readers_(path_, options.vfs),
        writer_(std::move(writer)) {}

  // Starts the store; call once, before anything else. Errors: as sqlite::ErrorOf().
  absl::Status Start(const SqliteOptions& options);

  absl::StatusOr<std::optional<StoredRecord>> Get(std::string_view key) override;
  using Store::List;
  absl::Status List(const ListOptions& options, const Visit& visit) override;
  absl::StatusOr<std::vector<int64_t>> Commit(std::span<const CompareAndPut> batch) override;
  absl::StatusOr<BackupInfo> Backup(const std::string& path) override;
  absl::Status CheckIntegrity() override;
  StoreStats Stats() const override;
  std::string Describe() const override { return "sqlite:" + path_; }

 private:
  absl::Status Annotated(const absl::Status& status) const {
    return base::Annotate(status, "store " + path_);
  }
  absl::StatusOr<std::vector<int64_t>> CommitLocked(std::span<const CompareAndPut> batch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_);
  absl::StatusOr<std::vector<int64_t>> Transact(std::span<const CompareAndPut> batch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_);
  absl::Status Write(const CompareAndPut& put, int64_t revision)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_);
  absl::Status WhyRefused(const CompareAndPut& put) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_);
  absl::StatusOr<int64_t> NextRevision() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_);
  absl::Status EmptyDoubtfulLog() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_);

  const std::string path_;
  const StoreLock file_lock_;
  sqlite::ReaderPool readers_;
  absl::Mutex backing_up_;  // One backup at a time: each reads everything three times.

  mutable absl::Mutex writing_;
  // The writer stands before the statements, so that it is closed after them.
  const sqlite::Database writer_ ABSL_GUARDED_BY(writing_);
  Statement insert_ ABSL_GUARDED_BY(writing_);
  Statement update_ ABSL_GUARDED_BY(writing_);
  Statement remove_ ABSL_GUARDED_BY(writing_);
  Statement revision_of_ ABSL_GUARDED_BY(writing_);
  Statement next_revision_ ABSL_GUARDED_BY(writing_);
  int log_pages_ ABSL_GUARDED_BY(writing_) = 0;  // SQLite's word at the last commit.
  bool log_doubtful_ ABSL_GUARDED_BY(writing_) = false;
  StoreStats stats_ ABSL_GUARDED_BY(writing_);
  // The checkpointer stands last: its thread uses what stands above.
  std::unique_ptr<sqlite::Checkpointer> checkpointer_;
};

absl::Status SqliteStore::Start(const SqliteOptions& options) {
  ASSIGN_OR_RETURN(sqlite::Database mover,
                   sqlite::Open(path_, SQLITE_OPEN_READWRITE, options.vfs.c_str()));
  RETURN_IF_ERROR(sqlite::Execute(mover.get(), "PRAGMA synchronous = FULL"));
  checkpointer_ = std::make_unique<sqlite::Checkpointer>(std::move(mover), writing_, options.log);
  absl::MutexLock lock(&writing_);
  sqlite3* database = writer_.get();
  // This hook replaces SQLite's own, which would move the log inside a commit.
  sqlite3_wal_hook(
      database,
      [](void* pages, sqlite3*, const char*, int count) {
        *static_cast<int*>(pages) = count;
        return SQLITE_OK;
      },
      &log_pages_);
  ASSIGN_OR_RETURN(insert_, sqlite::Prepare(database,
                                            "INSERT INTO record (key, revision, crc, value) VALUES "
                                            "(?1, ?2, ?3, ?4) ON CONFLICT (key) DO NOTHING"));
  ASSIGN_OR_RETURN(update_, sqlite::Prepare(database,
                                            "UPDATE record SET revision = ?2, crc = ?3, value = ?4 "
                                            "WHERE key = ?1 AND revision = ?5"));
  ASSIGN_OR_RETURN(
      remove_, sqlite::Prepare(database, "DELETE FROM record WHERE key = ?1 AND revision = ?2"));
  ASSIGN_OR_RETURN(revision_of_,
                   sqlite::Prepare(database, "SELECT revision FROM record WHERE key = ?1"));
  ASSIGN_OR_RETURN(next_revision_, sqlite::Prepare(database,
                                                   "UPDATE counter SET revision = revision + 1 "
                                                   "RETURNING revision"));
  // What the log held when the last process ended was read from memory, perhaps, and is not on the
  // disk: that process may have died of a failed sync. If this fails now, the first commit repeats
  // it.
  log_doubtful_ = true;
  EmptyDoubtfulLog().IgnoreError();
  return absl::OkStatus();
}

absl::StatusOr<std::optional<StoredRecord>> SqliteStore::Get(std::string_view key) {
  absl::StatusOr<sqlite::ReaderPool::Loan> reader = readers_.Borrow();
  if (!reader.ok()) return Annotated(reader.status());
  const sqlite::ResetAtEnd reset(reader->get());
  sqlite::BindText(reader->get(), 1, key);
  const int result = sqlite::Step(reader->get());
  if (result == SQLITE_DONE) {
    reader->Finish();
    return std::nullopt;
  }
  if (result != SQLITE_ROW) {
    return Annotated(sqlite::ErrorOf(reader->database(), result, fmt::format("read {}", key)));
  }
  const absl::StatusOr<sqlite::Row> row = sqlite::ReadRow(reader->get());
  if (!row.ok()) return Annotated(row.status());
  reader->Finish();
  return StoredRecord{.value = std::string(row->value), .revision = row->revision};
}

absl::Status SqliteStore::List(const ListOptions& options, const Visit& visit) {
  absl::StatusOr<sqlite::ReaderPool::Loan> reader = readers_.Borrow();
  if (!reader.ok()) return Annotated(reader.status());
  const std::string sql = fmt::format(
      "SELECT {} FROM record WHERE key >= ?1{} ORDER BY key{} LIMIT ?3", sqlite::kRowColumns,
      options.range.end.empty() ? "" : " AND key < ?2", options.descending ? " DESC" : "");
  absl::StatusOr<Statement> statement = sqlite::Prepare(reader->database(), sql);
  if (!statement.ok()) return Annotated(statement.status());
  sqlite::BindText(statement->get(), 1, options.range.first);
  if (!options.range.end.empty()) sqlite::BindText(statement->get(), 2, options.range.end);
  // SQLite takes a negative limit for none.
  const auto limit = static_cast<sqlite3_int64>(options.limit);
  sqlite3_bind_int64(statement->get(), 3, limit == 0 ? -1 : limit);
  int result = SQLITE_OK;
  while ((result = sqlite::Step(statement->get())) == SQLITE_ROW) {
    const absl::StatusOr<sqlite::Row> row = sqlite::ReadRow(statement->get());
    if (!row.ok()) return Annotated(row.status());
    visit(row->key, {.value = std::string(row->value), .revision = row->revision});
  }
  if (result != SQLITE_DONE) {
    return Annotated(sqlite::ErrorOf(reader->database(), result, "list records"));
  }
  statement->reset();  // Ends the snapshot before the reader goes back.
  reader->Finish();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> SqliteStore::Commit(std::span<const CompareAndPut> batch) {
  RETURN_IF_ERROR(ValidateBatch(batch));
  if (batch.empty()) return std::vector<int64_t>();
  absl::MutexLock lock(&writing_);
  absl::StatusOr<std::vector<int64_t>> revisions = CommitLocked(batch);
  if (revisions.ok()) {
    ++stats_.commits;
    stats_.records_written += static_cast<int64_t>(batch.size());
  } else if (!absl::IsAborted(revisions.status())) {
    ++stats_.failed_commits;
    return Annotated(revisions.status());
  }
  return revisions;
}

absl::StatusOr<std::vector<int64_t>> SqliteStore::CommitLocked(
    std::span<const CompareAndPut> batch) {
  checkpointer_->AssertWriting();
  RETURN_IF_ERROR(EmptyDoubtfulLog());
  ASSIGN_OR_RETURN(const bool waited, checkpointer_->AwaitRoom());
  if (waited) ++stats_.waited_for_log;
  absl::StatusOr<std::vector<int64_t>> revisions = Transact(batch);
  if (absl::IsResourceExhausted(revisions.status()) && log_pages_ > 0) {
    // The log cannot grow, but moved into the file it can be written over from its beginning.
    const absl::StatusOr<bool> emptied = checkpointer_->Run();
    if (emptied.ok() && *emptied) revisions = Transact(batch);
  }
  if (absl::IsUnavailable(revisions.status())) log_doubtful_ = true;
  return revisions;
}

absl::StatusOr<std::vector<int64_t>> SqliteStore::Transact(std::span<const CompareAndPut> batch) {
  checkpointer_->AssertWriting();
  sqlite::Transaction transaction(writer_.get());
  RETURN_IF_ERROR(transaction.BeginWriting());
  ASSIGN_OR_RETURN(const int64_t revision, NextRevision());
  std::vector<int64_t> revisions;
  revisions.reserve(batch.size());
  for (const CompareAndPut& put : batch) {
    RETURN_IF_ERROR(Write(put, revision));
    revisions.push_back(put.value ? revision : 0);
  }
  RETURN_IF_ERROR(transaction.Commit());
  checkpointer_->OnLogLength(log_pages_);
  return revisions;
}

absl::StatusOr<int64_t> SqliteStore::NextRevision() {
  const sqlite::ResetAtEnd reset(next_revision_.get());
  const int result = sqlite::Step(next_revision_.get());
  if (result == SQLITE_DONE) {
    return absl::DataLossError(
        "the table counter is empty: stop the server and put a backup in the file's place");
  }
  if (result != SQLITE_ROW) return sqlite::ErrorOf(writer_.get(), result, "take a revision");
  return sqlite3_column_int64(next_revision_.get(), 0);
}

// The comparison is part of the write: a row that is not as expected is not there for it.
absl::Status SqliteStore::Write(const CompareAndPut& put, int64_t revision) {
  if (!put.value && put.expected == 0) return WhyRefused(put);
  sqlite3_stmt* statement = !put.value          ? remove_.get()
                            : put.expected == 0 ? insert_.get()
                                                : update_.get();
  const sqlite::ResetAtEnd reset(statement);
  sqlite::BindText(statement, 1, put.key);
  if (put.value) {
    sqlite3_bind_int64(statement, 2, revision);
    sqlite3_bind_int64(statement, 3, int64_t{RecordCrc(put.key, revision, *put.value)});
    sqlite::BindBlob(statement, 4, *put.value);
    if (put.expected != 0) sqlite3_bind_int64(statement, 5, put.expected);
  } else {
    sqlite3_bind_int64(statement, 2, put.expected);
  }
  const int result = sqlite::Step(statement);
  if (result != SQLITE_DONE) {
    return sqlite::ErrorOf(writer_.get(), result, fmt::format("write {}", put.key));
  }
  return sqlite3_changes(writer_.get()) == 1 ? absl::OkStatus() : WhyRefused(put);
}

// Returns OK for the one case that is no refusal: to remove what is not there.
absl::Status SqliteStore::WhyRefused(const CompareAndPut& put) {
  const sqlite::ResetAtEnd reset(revision_of_.get());
  sqlite::BindText(revision_of_.get(), 1, put.key);
  const int result = sqlite::Step(revision_of_.get());
  if (result != SQLITE_ROW && result != SQLITE_DONE) {
    return sqlite::ErrorOf(writer_.get(), result, fmt::format("read {}", put.key));
  }
  const int64_t found = result == SQLITE_ROW ? sqlite3_column_int64(revision_of_.get(), 0) : 0;
  if (found == put.expected) return absl::OkStatus();
  return Changed(put, found);
}

// Empties the log. After a failed sync, its end may be in the kernel's memory and not on the disk,
// and later syncs will not say so. Whatever counts of it is therefore written again, into the file,
// before anything is built on it; then the log begins anew.
absl::Status SqliteStore::EmptyDoubtfulLog() {
  checkpointer_->AssertWriting();
  if (!log_doubtful_) return absl::OkStatus();
  checkpointer_->AwaitIdle();  // On a slow disk a round takes longer than SQLite waits for it.
  if (!log_doubtful_) return absl::OkStatus();
  errno = 0;
  const int result = sqlite3_wal_checkpoint_v2(writer_.get(), nullptr, SQLITE_CHECKPOINT_TRUNCATE,
                                               nullptr, nullptr);
  if ((result & 0xFF) == SQLITE_BUSY) {
    return absl::UnavailableError(
        "the log cannot be emptied after an error, since somebody reads it: try again");
  }
  if (result != SQLITE_OK) return sqlite::ErrorOf(writer_.get(), result, "empty the log");
  log_doubtful_ = false;
  log_pages_ = 0;
  checkpointer_->OnLogLength(0);
  return absl::OkStatus();
}

absl::StatusOr<BackupInfo> SqliteStore::Backup(const std::string& path) {
  absl::MutexLock lock(&backing_up_);
  absl::StatusOr<sqlite::ReaderPool::Loan> reader = readers_.Borrow();
  if (!reader.ok()) return Annotated(reader.status());
  absl::StatusOr<BackupInfo> info = sqlite::BackUp(reader->database(), path);
  if (!info.ok()) return base::Annotate(info.status(), "back up store " + path_);
  reader->Finish();
  return info;
}

absl::Status SqliteStore::CheckIntegrity() {
  absl::StatusOr<sqlite::ReaderPool::Loan> reader = readers_.Borrow();
  if (!reader.ok()) return Annotated(reader.status());
  {
    sqlite::Transaction snapshot(reader->database());
    RETURN_IF_ERROR(Annotated(snapshot.BeginReading()));
    RETURN_IF_ERROR(Annotated(sqlite::CheckStructure(reader->database(), sqlite::Depth::kFull)));
    RETURN_IF_ERROR(Annotated(sqlite::DigestRecords(reader->database()).status()));
  }
  reader->Finish();
  return absl::OkStatus();
}

StoreStats SqliteStore::Stats() const {
  absl::MutexLock lock(&writing_);
  checkpointer_->AssertWriting();
  StoreStats stats = stats_;
  stats.file_bytes = FileBytes(path_);
  stats.log_bytes = checkpointer_->log_pages() * kPageBytes;
  stats.checkpoints = checkpointer_->rounds();
  stats.failed_checkpoints = checkpointer_->failures();
  return stats;
}

absl::StatusOr<sqlite::Database> OpenWriter(const std::string& path, const std::string& vfs) {
  ASSIGN_OR_RETURN(sqlite::Database database,
                   sqlite::Open(path, SQLITE_OPEN_READWRITE, vfs.c_str()));
  sqlite3* handle = database.get();
  sqlite3_busy_timeout(handle, kBusyTimeoutMs);
  // The file is checked before anything is changed: it may be somebody else's.
  RETURN_IF_ERROR(sqlite::CheckIdentity(handle));
  RETURN_IF_ERROR(sqlite::Execute(handle, "PRAGMA journal_mode = WAL"));
  RETURN_IF_ERROR(sqlite::Execute(handle, "PRAGMA synchronous = FULL"));
  // Debian builds SQLite to overwrite what is deleted with zeros: more to write, nothing to hide.
  RETURN_IF_ERROR(sqlite::Execute(handle, "PRAGMA secure_delete = OFF"));
  // Some thousand rows change in one transaction: 32 MiB hold them until it is committed.
  RETURN_IF_ERROR(sqlite::Execute(handle, "PRAGMA cache_size = -32768"));
  // The log gives the disk back after a spike.
  RETURN_IF_ERROR(sqlite::Execute(handle, "PRAGMA journal_size_limit = 67108864"));
  const auto depth =
      FileBytes(path) <= kFullCheckBytes ? sqlite::Depth::kFull : sqlite::Depth::kQuick;
  RETURN_IF_ERROR(sqlite::CheckStructure(handle, depth));
  RETURN_IF_ERROR(sqlite::Upgrade(handle));
  return database;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const std::string& path,
                                                       const SqliteOptions& options) {
  const std::string what = "open store " + path;
  if (auto status = os::CheckDirectory(os::DirectoryOf(path)); !status.ok()) {
    return base::Annotate(status, what);
  }
  absl::StatusOr<StoreLock> lock = StoreLock::Acquire(path + ".lock");
  if (!lock.ok()) return base::Annotate(lock.status(), what);
  absl::Status file = sqlite::CheckFile(path);
  if (absl::IsNotFound(file)) file = sqlite::CreateEmpty(path);
  if (!file.ok()) return base::Annotate(file, what);
  absl::StatusOr<sqlite::Database> writer = OpenWriter(path, options.vfs);
  if (!writer.ok()) return base::Annotate(writer.status(), what);
  auto store = std::make_unique<SqliteStore>(path, *std::move(lock), *std::move(writer), options);
  RETURN_IF_ERROR(base::Annotate(store->Start(options), what));
  return store;
}

}  // namespace spoke::ipam
