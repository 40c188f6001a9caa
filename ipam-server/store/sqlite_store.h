// The store on SQLite: one row a record, write-ahead log, synced at every commit.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "ipam-server/store/store.h"

namespace spoke::ipam {

// Lengths of the write-ahead log, in pages of 4 KiB.
struct LogLimits {
  // The pages from which the log is moved into the file, in the background. More means fewer writes
  // of a page that changes often, and a longer start after a crash.
  int64_t checkpoint_pages = 4096;
  // The pages from which a commit waits for that. Only a disk that does not keep up gets there, or
  // someone who reads one snapshot for long; the latter does not stop commits.
  int64_t max_pages = 16384;
};

struct SqliteOptions {
  // How SQLite reaches the disk. This one keeps other processes out and the log's index in our
  // memory: no mapped file that a full disk could turn into a signal.
  std::string vfs = "unix-excl";
  LogLimits log;
};

// Opens or creates the database at `path`; its directory must exist. Beside it come PATH-wal, a
// part of the store, and PATH.lock. Holds both locks for as long as the store lives: two servers on
// one file would give one address twice. Brings an older version up to date. Checks the whole file,
// if that takes less than a second or so, else all but the agreement of index and table. Errors,
// each naming `path` and what to do: kNotFound (no such directory); kPermissionDenied;
// kResourceExhausted; kFailedPrecondition (another process holds it, a newer version or another
// application wrote it, a directory); kDataLoss (not a database, damaged, or emptied).
absl::StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const std::string& path,
                                                       const SqliteOptions& options = {});

}  // namespace spoke::ipam
