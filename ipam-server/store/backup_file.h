// Backups on their way: a temporary file beside the place it will have, which gets its name only
// when it is whole; and one beside the store that is sent to somebody and removed. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace spoke::ipam {

class BackupFile {
 public:
  // Makes an empty temporary file, mode 0600, in the directory of `path`.
  // Errors: kAlreadyExists (there is something at `path`); kNotFound (no such directory);
  // as errno says for the rest.
  static absl::StatusOr<BackupFile> Create(const std::string& path);
  BackupFile(BackupFile&& other) noexcept;
  BackupFile& operator=(BackupFile&&) = delete;
  // Removes the temporary file, unless it was published.
  ~BackupFile();

  // Write the content here.
  const std::string& temporary() const { return temporary_; }

  // Syncs the content and drops it from memory, so that whoever reads it back reads the disk.
  // Errors: as errno says.
  absl::Status Sync();

  // Gives the synced content its name, and syncs that; the length in bytes. Call once.
  // Errors: kAlreadyExists (something has come to `path` meanwhile and is left alone); as errno
  // says for the rest.
  absl::StatusOr<int64_t> Publish();

 private:
  BackupFile(std::string path, std::string temporary)
      : path_(std::move(path)), temporary_(std::move(temporary)) {}

  std::string path_;
  std::string temporary_;  // Empty once published or moved from.
};

// Returns where a backup of the store in `store` lies while it is sent to somebody: beside it,
// under a name that has this process's id and `now` in it.
std::string ScratchBackupPath(const std::string& store, absl::Time now);

// Removes what a server that was killed has left of such backups: regular files with such a name,
// whole or temporary, of this store and of no other. For who holds the store's lock, before it
// makes the first one. Returns how many there were. Errors: as errno says; the message names the
// file, and the others are removed.
absl::StatusOr<int> RemoveScratchBackups(const std::string& store);

}  // namespace spoke::ipam
