// Copies of a database while it is in use.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "ipam-server/store/sqlite_handle.h"
#include "ipam-server/store/store.h"

namespace spoke::ipam::sqlite {

// Copies one snapshot of `source` to the new file `path`, as Store::Backup() says. `source` may do
// nothing else meanwhile; other connections may.
absl::StatusOr<BackupInfo> BackUp(sqlite3* source, const std::string& path);

}  // namespace spoke::ipam::sqlite
