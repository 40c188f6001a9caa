#include "ipam-server/store/sqlite_backup.h"

#include <cerrno>
#include <optional>
#include <string>

#include "fmt/core.h"
#include "ipam-server/store/backup_file.h"
#include "ipam-server/store/record_codec.h"
#include "ipam-server/store/record_digest.h"
#include "ipam-server/store/sqlite_schema.h"
#include "lib/base/status.h"

namespace spoke::ipam::sqlite {
namespace {

absl::Status CopyPages(sqlite3* source, sqlite3* target) {
  sqlite3_backup* copy = sqlite3_backup_init(target, "main", source, "main");
  if (copy == nullptr) return ErrorOf(target, sqlite3_errcode(target), "begin the copy");
  // One step inside the caller's transaction copies one snapshot, whatever is committed meanwhile.
  errno = 0;
  sqlite3_backup_step(copy, -1);
  const int result = sqlite3_backup_finish(copy);
  return result == SQLITE_OK ? absl::OkStatus() : ErrorOf(target, result, "copy");
}

// The digest of what was copied, computed from the source.
absl::StatusOr<SnapshotDigest> CopySnapshot(sqlite3* source, const std::string& path) {
  ASSIGN_OR_RETURN(const Database target, Open(path, SQLITE_OPEN_READWRITE, nullptr));
  // The file has no name yet that anyone would look for, and is synced when it is whole: neither a
  // journal nor syncs on the way are of use.
  RETURN_IF_ERROR(Execute(target.get(), "PRAGMA locking_mode = EXCLUSIVE"));
  RETURN_IF_ERROR(Execute(target.get(), "PRAGMA journal_mode = OFF"));
  RETURN_IF_ERROR(Execute(target.get(), "PRAGMA synchronous = OFF"));
  Transaction snapshot(source);
  RETURN_IF_ERROR(snapshot.BeginReading());
  ASSIGN_OR_RETURN(const SnapshotDigest digest, DigestRecords(source));
  RETURN_IF_ERROR(CopyPages(source, target.get()));
  // The copied header says that there is a log. Without that, the file is complete by itself, and
  // can be read where nothing can be written.
  RETURN_IF_ERROR(Execute(target.get(), "PRAGMA journal_mode = DELETE"));
  return digest;
}

absl::StatusOr<SnapshotDigest> ReadBack(const std::string& path) {
  ASSIGN_OR_RETURN(const Database copy, Open(path, SQLITE_OPEN_READONLY, nullptr));
  RETURN_IF_ERROR(CheckIdentity(copy.get()));
  RETURN_IF_ERROR(CheckStructure(copy.get(), Depth::kFull));
  return DigestRecords(copy.get());
}

// The store's own record; nullopt: no server has ever written it.
absl::StatusOr<std::optional<StoredRecord>> OwnRecord(sqlite3* copy) {
  ASSIGN_OR_RETURN(const Statement find,
                   Prepare(copy, fmt::format("SELECT {} FROM record WHERE key = ?1", kRowColumns)));
  BindText(find.get(), 1, kStoreKey);
  const int result = Step(find.get());
  if (result == SQLITE_DONE) return std::nullopt;
  if (result != SQLITE_ROW) return ErrorOf(copy, result, "read the store's own record");
  ASSIGN_OR_RETURN(const Row row, ReadRow(find.get()));
  return StoredRecord{.value = std::string(row.value), .revision = row.revision};
}

absl::Status MarkAsBackup(const std::string& path) {
  ASSIGN_OR_RETURN(const Database copy, Open(path, SQLITE_OPEN_READWRITE, nullptr));
  RETURN_IF_ERROR(Execute(copy.get(), "PRAGMA journal_mode = MEMORY"));
  ASSIGN_OR_RETURN(std::optional<StoredRecord> record, OwnRecord(copy.get()));
  if (!record) return absl::OkStatus();
  ASSIGN_OR_RETURN(record->value, MarkedAsBackup(record->value));
  Transaction transaction(copy.get());
  RETURN_IF_ERROR(transaction.BeginWriting());
  RETURN_IF_ERROR(
      Execute(copy.get(), fmt::format("DELETE FROM record WHERE key = '{}'", kStoreKey)));
  RETURN_IF_ERROR(AddRecord(copy.get(), kStoreKey, *record));
  return transaction.Commit();
}

absl::Status CheckMark(const std::string& path) {
  ASSIGN_OR_RETURN(const Database copy, Open(path, SQLITE_OPEN_READONLY, nullptr));
  ASSIGN_OR_RETURN(const std::optional<StoredRecord> record, OwnRecord(copy.get()));
  if (!record) return absl::OkStatus();
  ASSIGN_OR_RETURN(const RecoveryState state, DecodeStore(record->value));
  return state.backup ? absl::OkStatus()
                      : absl::DataLossError(path + " does not say that it is a backup");
}

}  // namespace

absl::StatusOr<BackupInfo> BackUp(sqlite3* source, const std::string& path) {
  ASSIGN_OR_RETURN(BackupFile file, BackupFile::Create(path));
  ASSIGN_OR_RETURN(const SnapshotDigest taken, CopySnapshot(source, file.temporary()));
  RETURN_IF_ERROR(file.Sync());
  const auto found = ReadBack(file.temporary());
  if (!found.ok()) return base::Annotate(found.status(), "read back " + file.temporary());
  if (*found != taken) {
    return absl::DataLossError(
        fmt::format("what was written to {} reads back differently ({} records of {}): is its disk "
                    "sound?",
                    file.temporary(), found->records(), taken.records()));
  }
  RETURN_IF_ERROR(MarkAsBackup(file.temporary()));
  RETURN_IF_ERROR(file.Sync());
  RETURN_IF_ERROR(CheckMark(file.temporary()));
  ASSIGN_OR_RETURN(const int64_t bytes, file.Publish());
  return BackupInfo{.records = taken.records(), .bytes = bytes};
}

}  // namespace spoke::ipam::sqlite
