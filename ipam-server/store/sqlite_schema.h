// What the store's database file looks like: how one is made, told from others, brought up to date
// and checked.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "ipam-server/store/record_digest.h"
#include "ipam-server/store/sqlite_handle.h"
#include "ipam-server/store/store.h"

namespace spoke::ipam::sqlite {

// Makes a database without records at `path`, whole or not at all. It never overwrites a file.
// Errors: kNotFound (no such directory); kAlreadyExists; as ErrorOf() and errno say.
absl::Status CreateEmpty(const std::string& path);

// Makes the tables of a store in the empty `database`.
absl::Status CreateTables(sqlite3* database);

// Adds a record with the revision that it has elsewhere, inside the caller's transaction.
// Errors: as ErrorOf().
absl::Status AddRecord(sqlite3* database, std::string_view key, const StoredRecord& record);

// Whether a file is there that can be opened as a store; OK says so, kNotFound that there is
// none and that a new one may be made. Opens nothing.
// Errors: kFailedPrecondition (a directory or a device); kDataLoss (empty, or gone while its log is
// still there).
absl::Status CheckFile(const std::string& path);

// Whether `database` is a store, of a version that this server can read. Changes nothing.
// Errors: kFailedPrecondition (another application's, or a newer server's); kDataLoss (not a
// database, or damaged).
absl::Status CheckIdentity(sqlite3* database);

// Brings a store of an older version up to date, in one transaction.
absl::Status Upgrade(sqlite3* database);

// Reads the structure of the file. Quick leaves out whether index and table agree.
// Errors: kDataLoss (says of what).
enum class Depth { kQuick, kFull };
absl::Status CheckStructure(sqlite3* database, Depth depth);

// Reads every record and compares it with its checksum. Errors: kDataLoss (names the key).
absl::StatusOr<SnapshotDigest> DigestRecords(sqlite3* database);

// A record as its row says, its checksum compared.
struct Row {
  std::string_view key;  // Valid until the statement is stepped or reset.
  int64_t revision = 0;
  uint32_t crc = 0;
  std::string_view value;  // Borrowed as `key` is.
};
// The columns that ReadRow() expects, in order.
inline constexpr std::string_view kRowColumns = "key, revision, crc, value";
// Errors: kDataLoss (the checksum differs; names the key).
absl::StatusOr<Row> ReadRow(sqlite3_stmt* statement);

}  // namespace spoke::ipam::sqlite
