// Whole files: read, and replace atomically. Thread-safe (no state).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace spoke::os {

// The way that WriteFileAtomic() goes before it returns.
enum class Durability {
  kVisible,       // Readers see the whole new file or the whole old one; a power cut may lose it.
  kSurvivesPower  // The file and its directory entry are synced.
};

// Returns the content of `path`. Errors: kNotFound, kPermissionDenied, kResourceExhausted (longer
// than `max_bytes`), kInternal.
absl::StatusOr<std::string> ReadFile(const std::string& path, size_t max_bytes = 64UL << 20);

// Replaces `path` by way of a temporary file in the same directory, PATH.tmp, and rename(2). On
// error the old file is as it was and the temporary one is gone. `mode` is its permissions: those
// of a program as they are, others less the umask. Errors: as errno says, with the path.
absl::Status WriteFileAtomic(const std::string& path, std::string_view content,
                             Durability durability, mode_t mode = 0644);

// Returns whether `path` is an existing directory. Errors: kNotFound, kFailedPrecondition (not a
// directory).
absl::Status CheckDirectory(const std::string& path);

// Makes the directory, for its owner alone, unless it is there. Its parent must be. Errors: as
// errno says, with the path; kFailedPrecondition (something else has that name).
absl::Status MakeDirectory(const std::string& path);

// Returns the directory part of `path`: "/a/b" gives "/a", "b" gives ".".
std::string DirectoryOf(const std::string& path);

}  // namespace spoke::os
