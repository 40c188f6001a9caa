#include "ipam-server/store/sqlite_schema.h"

#include <sys/stat.h>

#include <cerrno>
#include <vector>

#include "absl/strings/str_join.h"
#include "fmt/core.h"
#include "ipam-server/store/backup_file.h"
#include "lib/base/status.h"

namespace spoke::ipam::sqlite {
namespace {

constexpr int64_t kSchemaVersion = 2;
// "SPOK": tells our files from those of other applications, file(1) included.
constexpr int64_t kApplicationId = 0x53504F4B;
// Rows are 1 to 8 KB. Measured against 8192 and 16384: never slower, and up to 1.8 times faster,
// since less around a row is written with it.
constexpr int kPageBytes = 4096;
constexpr int kMaxFindings = 5;

// A row that changes is rewritten in its own leaf and overflow pages, thanks to a row id. Keyed by
// the text itself (WITHOUT ROWID) rows of more than a quarter of a page spill, and their tree is
// rewritten with them: measured half as fast.
constexpr std::string_view kCreateRecord =
    "CREATE TABLE record (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, revision INTEGER NOT "
    "NULL, crc INTEGER NOT NULL, value BLOB NOT NULL)";

bool IsFileWithContent(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && info.st_size > 0;
}

void SqlRecordCrc(sqlite3_context* context, int, sqlite3_value** arguments) {
  const auto text = [&](int i) {
    const void* data = sqlite3_value_blob(arguments[i]);
    const auto size = static_cast<size_t>(sqlite3_value_bytes(arguments[i]));
    return data == nullptr ? std::string_view()
                           : std::string_view(static_cast<const char*>(data), size);
  };
  const int64_t revision = sqlite3_value_int64(arguments[1]);
  sqlite3_result_int64(context, int64_t{RecordCrc(text(0), revision, text(2))});
}

// Version 1 kept the records in a table WITHOUT ROWID, and had no checksums.
absl::Status UpgradeFrom1(sqlite3* database) {
  const int result =
      sqlite3_create_function_v2(database, "record_crc", 3, SQLITE_UTF8 | SQLITE_DETERMINISTIC,
                                 nullptr, &SqlRecordCrc, nullptr, nullptr, nullptr);
  if (result != SQLITE_OK) return ErrorOf(database, result, "define record_crc");
  RETURN_IF_ERROR(Execute(database, "ALTER TABLE record RENAME TO record_1"));
  RETURN_IF_ERROR(Execute(database, std::string(kCreateRecord)));
  RETURN_IF_ERROR(Execute(database,
                          "INSERT INTO record (key, revision, crc, value) SELECT key, revision, "
                          "record_crc(key, revision, value), value FROM record_1 ORDER BY key"));
  RETURN_IF_ERROR(Execute(database, "DROP TABLE record_1"));
  return Execute(database, fmt::format("PRAGMA application_id = {}", kApplicationId));
}

}  // namespace

absl::Status CreateTables(sqlite3* database) {
  RETURN_IF_ERROR(Execute(database, fmt::format("PRAGMA page_size = {}", kPageBytes)));
  Transaction transaction(database);
  RETURN_IF_ERROR(transaction.BeginWriting());
  RETURN_IF_ERROR(Execute(database, std::string(kCreateRecord)));
  // The last revision given, kept apart from the records: it must not fall when one is removed.
  RETURN_IF_ERROR(Execute(database, "CREATE TABLE counter (revision INTEGER NOT NULL)"));
  RETURN_IF_ERROR(Execute(database, "INSERT INTO counter VALUES (0)"));
  RETURN_IF_ERROR(Execute(database, fmt::format("PRAGMA application_id = {}", kApplicationId)));
  RETURN_IF_ERROR(Execute(database, fmt::format("PRAGMA user_version = {}", kSchemaVersion)));
  return transaction.Commit();
}

absl::Status AddRecord(sqlite3* database, std::string_view key, const StoredRecord& record) {
  ASSIGN_OR_RETURN(
      const Statement insert,
      Prepare(database, "INSERT INTO record (key, revision, crc, value) VALUES (?1, ?2, ?3, ?4)"));
  BindText(insert.get(), 1, key);
  sqlite3_bind_int64(insert.get(), 2, record.revision);
  sqlite3_bind_int64(insert.get(), 3, int64_t{RecordCrc(key, record.revision, record.value)});
  BindBlob(insert.get(), 4, record.value);
  const int result = Step(insert.get());
  return result == SQLITE_DONE ? absl::OkStatus()
                               : ErrorOf(database, result, fmt::format("write {}", key));
}

absl::Status CreateEmpty(const std::string& path) {
  // A crash must not leave an empty file behind: that is how a lost store looks.
  ASSIGN_OR_RETURN(BackupFile file, BackupFile::Create(path));
  {
    ASSIGN_OR_RETURN(const Database database,
                     Open(file.temporary(), SQLITE_OPEN_READWRITE, nullptr));
    RETURN_IF_ERROR(CreateTables(database.get()));
  }
  RETURN_IF_ERROR(file.Sync());
  return file.Publish().status();
}

absl::Status CheckFile(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) < 0) {
    const absl::Status missing = base::ErrnoToStatus(errno, path);
    if (!absl::IsNotFound(missing) || !IsFileWithContent(path + "-wal")) return missing;
    return absl::DataLossError(fmt::format(
        "{} is gone, but its log {}-wal is there: put both back, or restore a backup and remove "
        "the log; to begin with nothing, remove the log",
        path, path));
  }
  if (!S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(path + " is not a regular file: set another path");
  }
  if (info.st_size == 0) {
    return absl::DataLossError(
        path +
        " is empty, which a store never is: restore a backup, or remove the file to begin "
        "with nothing");
  }
  return absl::OkStatus();
}

absl::Status CheckIdentity(sqlite3* database) {
  ASSIGN_OR_RETURN(const int64_t application, QueryNumber(database, "PRAGMA application_id"));
  ASSIGN_OR_RETURN(const int64_t version, QueryNumber(database, "PRAGMA user_version"));
  ASSIGN_OR_RETURN(const int64_t tables,
                   QueryNumber(database,
                               "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name "
                               "IN ('record', 'counter')"));
  const bool first_version = application == 0 && version == 1;
  if (tables != 2 || (application != kApplicationId && !first_version)) {
    return absl::FailedPreconditionError(fmt::format(
        "a database, but of another application (id {:#x}): set another path, or put a backup in "
        "its place",
        application));
  }
  if (version < 1 || version > kSchemaVersion) {
    return absl::FailedPreconditionError(fmt::format(
        "schema version {} is not one of this server's (1 to {}): start the newer server, or "
        "put a backup in its place",
        version, kSchemaVersion));
  }
  return absl::OkStatus();
}

absl::Status Upgrade(sqlite3* database) {
  Transaction transaction(database);
  RETURN_IF_ERROR(transaction.BeginWriting());
  ASSIGN_OR_RETURN(const int64_t version, QueryNumber(database, "PRAGMA user_version"));
  if (version == kSchemaVersion) return absl::OkStatus();
  if (version == 1) RETURN_IF_ERROR(UpgradeFrom1(database));
  RETURN_IF_ERROR(Execute(database, fmt::format("PRAGMA user_version = {}", kSchemaVersion)));
  return transaction.Commit();
}

absl::Status CheckStructure(sqlite3* database, Depth depth) {
  const std::string sql = fmt::format(
      "PRAGMA {}({})", depth == Depth::kFull ? "integrity_check" : "quick_check", kMaxFindings);
  ASSIGN_OR_RETURN(const Statement statement, Prepare(database, sql));
  std::vector<std::string> findings;
  int result = SQLITE_OK;
  while ((result = Step(statement.get())) == SQLITE_ROW) {
    findings.emplace_back(ColumnBytes(statement.get(), 0));
  }
  if (result != SQLITE_DONE) return ErrorOf(database, result, sql);
  if (findings == std::vector<std::string>{"ok"}) return absl::OkStatus();
  return absl::DataLossError(
      fmt::format("the file is damaged ({}): stop the server and put a backup in the file's place",
                  absl::StrJoin(findings, "; ")));
}

absl::StatusOr<SnapshotDigest> DigestRecords(sqlite3* database) {
  ASSIGN_OR_RETURN(
      const Statement statement,
      Prepare(database, fmt::format("SELECT {} FROM record ORDER BY key", kRowColumns)));
  SnapshotDigest digest;
  int result = SQLITE_OK;
  while ((result = Step(statement.get())) == SQLITE_ROW) {
    ASSIGN_OR_RETURN(const Row row, ReadRow(statement.get()));
    digest.Add(row.crc);
  }
  if (result != SQLITE_DONE) return ErrorOf(database, result, "read all records");
  return digest;
}

absl::StatusOr<Row> ReadRow(sqlite3_stmt* statement) {
  Row row{.key = ColumnBytes(statement, 0),
          .revision = sqlite3_column_int64(statement, 1),
          .crc = static_cast<uint32_t>(sqlite3_column_int64(statement, 2)),
          .value = ColumnBytes(statement, 3)};
  if (RecordCrc(row.key, row.revision, row.value) == row.crc) return row;
  return absl::DataLossError(fmt::format(
      "record {} is not what was written (its checksum differs): stop the server and put a backup "
      "in the file's place",
      row.key));
}

}  // namespace spoke::ipam::sqlite
