// The store on SQLite: one table of records, write-ahead log, synced at every commit.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "ipam-server/store/store.h"

namespace spoke::ipam {

// Opens or creates the database at `path`; its directory must exist. Takes an exclusive lock for as
// long as the store lives: two servers on one file would give one address twice.
// Errors: kNotFound (no such directory); kPermissionDenied; kFailedPrecondition (another process
// holds it, or a newer version wrote it); kDataLoss (not a database, or damaged: restore a backup).
absl::StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const std::string& path);

}  // namespace spoke::ipam
