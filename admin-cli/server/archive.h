// A .tar.gz in memory, made with libarchive.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace spoke::ctl {

struct ArchiveFile {
  // The name is neither empty nor absolute, without "..": anything else is a caller's bug.
  std::string name;
  std::string content;
};

// Packs POSIX ustar entries of regular files of root's, mode 0600, last modified at `unix_seconds`,
// as one gzip member without name or time: equal input gives equal output. Errors: kInternal
// (libarchive refuses, as it does a name of more than 255 bytes, or has no memory).
absl::StatusOr<std::string> TarGz(const std::vector<ArchiveFile>& files, int64_t unix_seconds);

}  // namespace spoke::ctl
