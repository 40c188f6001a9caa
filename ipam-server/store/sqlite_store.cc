#include "ipam-server/store/sqlite_store.h"

#include <sqlite3.h>

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/os/file.h"

namespace spoke::ipam {
namespace {

constexpr int kSchemaVersion = 1;

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;

struct FinalizeStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

absl::StatusCode CodeOf(int result) {
  switch (result & 0xFF) {
    case SQLITE_FULL:
      return absl::StatusCode::kResourceExhausted;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return absl::StatusCode::kPermissionDenied;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::StatusCode::kDataLoss;
    case SQLITE_CANTOPEN:
      return absl::StatusCode::kNotFound;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::StatusCode::kFailedPrecondition;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

absl::Status ErrorOf(sqlite3* database, int result, std::string_view what) {
  return {CodeOf(result), fmt::format("{}: {}", what, sqlite3_errmsg(database))};
}

absl::Status Execute(sqlite3* database, const char* sql) {
  const int result = sqlite3_exec(database, sql, nullptr, nullptr, nullptr);
  return result == SQLITE_OK ? absl::OkStatus() : ErrorOf(database, result, sql);
}

absl::StatusOr<Statement> Prepare(sqlite3* database, const char* sql) {
  sqlite3_stmt* statement = nullptr;
  const int result =
      sqlite3_prepare_v3(database, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (result != SQLITE_OK) return ErrorOf(database, result, sql);
  return Statement(statement);
}

void BindText(sqlite3_stmt* statement, int index, std::string_view text) {
  sqlite3_bind_text64(statement, index, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
}

std::string ColumnBlob(sqlite3_stmt* statement, int column) {
  const void* data = sqlite3_column_blob(statement, column);
  const int size = sqlite3_column_bytes(statement, column);
  return data == nullptr ? std::string()
                         : std::string(static_cast<const char*>(data), static_cast<size_t>(size));
}

// Undoes an unfinished transaction at the end of the scope, whatever way it is left.
class Transaction {
 public:
  explicit Transaction(sqlite3* database) : database_(database) {}
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction() {
    if (sqlite3_get_autocommit(database_) == 0) {
      sqlite3_exec(database_, "ROLLBACK", nullptr, nullptr, nullptr);
    }
  }
  absl::Status Begin() { return Execute(database_, "BEGIN IMMEDIATE"); }
  absl::Status Commit() { return Execute(database_, "COMMIT"); }

 private:
  sqlite3* database_;
};

class SqliteStore final : public Store {
 public:
  SqliteStore(std::string path, Database database)
      : path_(std::move(path)), database_(std::move(database)) {}

  absl::Status Prepare() {
    absl::MutexLock lock(&mutex_);
    sqlite3* database = database_.get();
    ASSIGN_OR_RETURN(get_,
                     ipam::Prepare(database, "SELECT value, revision FROM record WHERE key = ?1"));
    ASSIGN_OR_RETURN(put_,
                     ipam::Prepare(database,
                                   "INSERT INTO record (key, revision, value) VALUES (?1, ?2, "
                                   "?3) ON CONFLICT (key) DO UPDATE SET revision = ?2, value "
                                   "= ?3"));
    ASSIGN_OR_RETURN(remove_, ipam::Prepare(database, "DELETE FROM record WHERE key = ?1"));
    ASSIGN_OR_RETURN(
        next_revision_,
        ipam::Prepare(database, "UPDATE counter SET revision = revision + 1 RETURNING revision"));
    return absl::OkStatus();
  }

  absl::StatusOr<std::optional<StoredRecord>> Get(std::string_view key) override {
    absl::MutexLock lock(&mutex_);
    return GetLocked(key);
  }

  absl::Status List(std::string_view prefix, const Visit& visit) override {
    absl::MutexLock lock(&mutex_);
    ASSIGN_OR_RETURN(const Statement list,
                     ipam::Prepare(database_.get(),
                                   "SELECT key, value, revision FROM record WHERE key >= ?1 AND "
                                   "substr(key, 1, ?2) = ?1 ORDER BY key"));
    BindText(list.get(), 1, prefix);
    sqlite3_bind_int64(list.get(), 2, static_cast<sqlite3_int64>(prefix.size()));
    int result = SQLITE_OK;
    while ((result = sqlite3_step(list.get())) == SQLITE_ROW) {
      const std::string key = ColumnBlob(list.get(), 0);
      visit(key,
            {.value = ColumnBlob(list.get(), 1), .revision = sqlite3_column_int64(list.get(), 2)});
    }
    if (result != SQLITE_DONE) return ErrorOf(database_.get(), result, "list records");
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<int64_t>> Commit(std::span<const CompareAndPut> batch) override {
    RETURN_IF_ERROR(ValidateBatch(batch));
    absl::MutexLock lock(&mutex_);
    Transaction transaction(database_.get());
    RETURN_IF_ERROR(transaction.Begin());
    std::vector<int64_t> revisions;
    for (const CompareAndPut& put : batch) {
      ASSIGN_OR_RETURN(const auto stored, GetLocked(put.key));
      if ((stored ? stored->revision : 0) != put.expected) {
        return absl::AbortedError("key " + put.key + " has changed");
      }
      ASSIGN_OR_RETURN(const int64_t revision, WriteLocked(put));
      revisions.push_back(revision);
    }
    RETURN_IF_ERROR(transaction.Commit());
    return revisions;
  }

  std::string Describe() const override { return "sqlite:" + path_; }

 private:
  absl::StatusOr<std::optional<StoredRecord>> GetLocked(std::string_view key)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    sqlite3_stmt* statement = get_.get();
    BindText(statement, 1, key);
    const int result = sqlite3_step(statement);
    std::optional<StoredRecord> record;
    if (result == SQLITE_ROW) {
      record = {.value = ColumnBlob(statement, 0), .revision = sqlite3_column_int64(statement, 1)};
    }
    sqlite3_reset(statement);
    if (result != SQLITE_ROW && result != SQLITE_DONE) {
      return ErrorOf(database_.get(), result, "read a record");
    }
    return record;
  }

  absl::StatusOr<int64_t> WriteLocked(const CompareAndPut& put)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!put.value) {
      BindText(remove_.get(), 1, put.key);
      RETURN_IF_ERROR(StepOnce(remove_.get(), "remove " + put.key));
      return 0;
    }
    int result = sqlite3_step(next_revision_.get());
    const int64_t revision = sqlite3_column_int64(next_revision_.get(), 0);
    sqlite3_reset(next_revision_.get());
    if (result != SQLITE_ROW) return ErrorOf(database_.get(), result, "take a revision");
    BindText(put_.get(), 1, put.key);
    sqlite3_bind_int64(put_.get(), 2, revision);
    sqlite3_bind_blob64(put_.get(), 3, put.value->data(), put.value->size(), SQLITE_STATIC);
    RETURN_IF_ERROR(StepOnce(put_.get(), "write " + put.key));
    return revision;
  }

  absl::Status StepOnce(sqlite3_stmt* statement, std::string_view what)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const int result = sqlite3_step(statement);
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return result == SQLITE_DONE ? absl::OkStatus() : ErrorOf(database_.get(), result, what);
  }

  const std::string path_;
  absl::Mutex mutex_;
  // Before the statements, so that it is closed after them.
  Database database_ ABSL_GUARDED_BY(mutex_);
  Statement get_ ABSL_GUARDED_BY(mutex_);
  Statement put_ ABSL_GUARDED_BY(mutex_);
  Statement remove_ ABSL_GUARDED_BY(mutex_);
  Statement next_revision_ ABSL_GUARDED_BY(mutex_);
};

absl::StatusOr<int> SchemaVersion(sqlite3* database) {
  ASSIGN_OR_RETURN(const Statement statement, Prepare(database, "PRAGMA user_version"));
  const int result = sqlite3_step(statement.get());
  if (result != SQLITE_ROW) return ErrorOf(database, result, "read the schema version");
  return sqlite3_column_int(statement.get(), 0);
}

absl::Status SetUp(sqlite3* database) {
  sqlite3_extended_result_codes(database, 1);
  // EXCLUSIVE: the lock is held until close, which also spares the shared-memory file.
  RETURN_IF_ERROR(Execute(database, "PRAGMA locking_mode = EXCLUSIVE"));
  RETURN_IF_ERROR(Execute(database, "PRAGMA journal_mode = WAL"));
  RETURN_IF_ERROR(Execute(database, "PRAGMA synchronous = FULL"));
  Transaction transaction(database);
  RETURN_IF_ERROR(transaction.Begin());
  ASSIGN_OR_RETURN(const int version, SchemaVersion(database));
  if (version > kSchemaVersion) {
    return absl::FailedPreconditionError(fmt::format(
        "schema version {} is newer than this server's {}: start the newer server, or restore a "
        "backup",
        version, kSchemaVersion));
  }
  if (version == 0) {
    RETURN_IF_ERROR(Execute(database,
                            "CREATE TABLE record (key TEXT PRIMARY KEY, revision INTEGER NOT NULL, "
                            "value BLOB NOT NULL) WITHOUT ROWID"));
    RETURN_IF_ERROR(Execute(database, "CREATE TABLE counter (revision INTEGER NOT NULL)"));
    RETURN_IF_ERROR(Execute(database, "INSERT INTO counter VALUES (0)"));
    RETURN_IF_ERROR(
        Execute(database, fmt::format("PRAGMA user_version = {}", kSchemaVersion).c_str()));
  }
  return transaction.Commit();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const std::string& path) {
  const std::string what = "open store " + path;
  if (auto status = os::CheckDirectory(os::DirectoryOf(path)); !status.ok()) {
    return base::Annotate(status, what);
  }
  sqlite3* handle = nullptr;
  const int result =
      sqlite3_open_v2(path.c_str(), &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  Database database(handle);
  if (result != SQLITE_OK) return ErrorOf(database.get(), result, what);
  if (auto status = SetUp(database.get()); !status.ok()) {
    if (status.code() == absl::StatusCode::kFailedPrecondition &&
        status.message().find("locked") != absl::string_view::npos) {
      return absl::FailedPreconditionError(what + ": another process holds it");
    }
    return base::Annotate(status, what);
  }
  auto store = std::make_unique<SqliteStore>(path, std::move(database));
  RETURN_IF_ERROR(base::Annotate(store->Prepare(), what));
  return store;
}

}  // namespace spoke::ipam
