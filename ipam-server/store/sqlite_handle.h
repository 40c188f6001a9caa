// SQLite's connections and statements as owned values, and its results as Status. A connection and
// its statements belong to one thread at a time.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace spoke::ipam::sqlite {

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;

struct FinalizeStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

// What `result`, the newest of `database`, means to a caller; the message is
// "<what>: <SQLite's words>: <what to do>". Call at once: errno says why a file could not be
// written, and must have been 0 before the call that failed, as the functions below see to.
//   kResourceExhausted   the disk is full; nothing has happened
//   kPermissionDenied    not writable; nothing has happened
//   kDataLoss            damaged, or no database at all
//   kFailedPrecondition  another process holds it
//   kNotFound            cannot be opened
//   kInvalidArgument     longer than SQLite can store (1 GB)
//   kUnavailable         everything else, an I/O error above all: it may have happened
absl::Status ErrorOf(sqlite3* database, int result, std::string_view what);

// Opens with extended result codes. `flags` as for sqlite3_open_v2(). Errors: as ErrorOf().
absl::StatusOr<Database> Open(const std::string& path, int flags, const char* vfs);

// An empty database that goes with its connection.
absl::StatusOr<Database> OpenInMemory();

// Calls sqlite3_step().
int Step(sqlite3_stmt* statement);

// Runs statements that give no rows, or whose rows are of no interest.
absl::Status Execute(sqlite3* database, const std::string& sql);

absl::StatusOr<Statement> Prepare(sqlite3* database, std::string_view sql);

// The first column of the first row, as a number.
absl::StatusOr<int64_t> QueryNumber(sqlite3* database, std::string_view sql);

// The text must stay as it is until the statement is reset.
void BindText(sqlite3_stmt* statement, int index, std::string_view text);
void BindBlob(sqlite3_stmt* statement, int index, std::string_view bytes);

// Returns bytes that are valid until the statement is stepped or reset.
std::string_view ColumnBytes(sqlite3_stmt* statement, int column);

// Resets a statement at the end of the scope, so that it holds neither a snapshot nor bound text.
class ResetAtEnd {
 public:
  explicit ResetAtEnd(sqlite3_stmt* statement) : statement_(statement) {}
  ResetAtEnd(const ResetAtEnd&) = delete;
  ResetAtEnd& operator=(const ResetAtEnd&) = delete;
  ~ResetAtEnd() {
    sqlite3_reset(statement_);
    sqlite3_clear_bindings(statement_);
  }

 private:
  sqlite3_stmt* statement_;
};

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
  absl::Status BeginWriting() { return Execute(database_, "BEGIN IMMEDIATE"); }
  // The snapshot is that of the first read.
  absl::Status BeginReading() { return Execute(database_, "BEGIN"); }
  absl::Status Commit() { return Execute(database_, "COMMIT"); }

 private:
  sqlite3* database_;
};

}  // namespace spoke::ipam::sqlite
