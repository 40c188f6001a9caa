#include "ipam-server/store/sqlite_handle.h"

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::ipam::sqlite {
namespace {

// Whether the failed call was one of those that make written data last. Then the data may be there
// or not, whatever errno says.
bool IsSync(int result) { return result == SQLITE_IOERR_FSYNC || result == SQLITE_IOERR_DIR_FSYNC; }

absl::StatusCode CodeOfInputOutput(int result, int error) {
  if (result == SQLITE_IOERR_SHMSIZE) return absl::StatusCode::kResourceExhausted;
  if (IsSync(result)) return absl::StatusCode::kUnavailable;
  // SQLite knows only ENOSPC as a full disk; the rest it calls an I/O error.
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
    return absl::StatusCode::kResourceExhausted;
  }
  if (error == EROFS || error == EPERM || error == EACCES) {
    return absl::StatusCode::kPermissionDenied;
  }
  return absl::StatusCode::kUnavailable;
}

absl::StatusCode CodeOf(int result, int error) {
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
    case SQLITE_TOOBIG:
      return absl::StatusCode::kInvalidArgument;
    case SQLITE_IOERR:
      return CodeOfInputOutput(result, error);
    default:
      return absl::StatusCode::kUnavailable;
  }
}

std::string_view RemedyFor(absl::StatusCode code, int result) {
  switch (code) {
    case absl::StatusCode::kResourceExhausted:
      return ": free space on its disk; nothing else is needed";
    case absl::StatusCode::kPermissionDenied:
      return ": make the file, its directory and its file system writable";
    case absl::StatusCode::kDataLoss:
      return ": stop the server and put a backup in the file's place";
    case absl::StatusCode::kFailedPrecondition:
      return ": another process holds it, end that";
    case absl::StatusCode::kUnavailable:
      return (result & 0xFF) == SQLITE_IOERR ? ": look for disk errors in the kernel's log" : "";
    default:
      return "";
  }
}

}  // namespace

absl::Status ErrorOf(sqlite3* database, int result, std::string_view what) {
  // sqlite3_system_errno() would not do: a failed COMMIT does not set it.
  const int error = errno;
  const absl::StatusCode code = CodeOf(result, error);
  std::string message = fmt::format("{}: {}", what, sqlite3_errmsg(database));
  if ((result & 0xFF) == SQLITE_IOERR && error != 0) {
    message += fmt::format(" ({})", std::strerror(error));
  }
  message += RemedyFor(code, result);
  return {code, message};
}

namespace {

absl::StatusOr<Database> OpenNamed(const std::string& name, int flags, const char* vfs) {
  sqlite3* handle = nullptr;
  errno = 0;
  const int result = sqlite3_open_v2(name.c_str(), &handle,
                                     flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, vfs);
  Database database(handle);
  if (result != SQLITE_OK) return ErrorOf(database.get(), result, "open");
  return database;
}

}  // namespace

absl::StatusOr<Database> Open(const std::string& path, int flags, const char* vfs) {
  // SQLite would take ":memory:" and "file:..." for more than names.
  return OpenNamed(path.starts_with('/') ? path : "./" + path, flags, vfs);
}

absl::StatusOr<Database> OpenInMemory() {
  return OpenNamed(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
}

int Step(sqlite3_stmt* statement) {
  errno = 0;
  return sqlite3_step(statement);
}

absl::Status Execute(sqlite3* database, const std::string& sql) {
  errno = 0;
  const int result = sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr);
  return result == SQLITE_OK ? absl::OkStatus() : ErrorOf(database, result, sql);
}

absl::StatusOr<Statement> Prepare(sqlite3* database, std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int result = sqlite3_prepare_v3(database, sql.data(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (result != SQLITE_OK) return ErrorOf(database, result, sql);
  return Statement(statement);
}

absl::StatusOr<int64_t> QueryNumber(sqlite3* database, std::string_view sql) {
  ASSIGN_OR_RETURN(const Statement statement, Prepare(database, sql));
  const int result = Step(statement.get());
  if (result == SQLITE_DONE) return absl::DataLossError(fmt::format("{}: no row", sql));
  if (result != SQLITE_ROW) return ErrorOf(database, result, sql);
  return sqlite3_column_int64(statement.get(), 0);
}

void BindText(sqlite3_stmt* statement, int index, std::string_view text) {
  // A null pointer would bind NULL.
  sqlite3_bind_text64(statement, index, text.data() == nullptr ? "" : text.data(), text.size(),
                      SQLITE_STATIC, SQLITE_UTF8);
}

void BindBlob(sqlite3_stmt* statement, int index, std::string_view bytes) {
  sqlite3_bind_blob64(statement, index, bytes.data() == nullptr ? "" : bytes.data(), bytes.size(),
                      SQLITE_STATIC);
}

std::string_view ColumnBytes(sqlite3_stmt* statement, int column) {
  const void* data = sqlite3_column_blob(statement, column);
  const int size = sqlite3_column_bytes(statement, column);
  if (data == nullptr) return {};
  return {static_cast<const char*>(data), static_cast<size_t>(size)};
}

}  // namespace spoke::ipam::sqlite
