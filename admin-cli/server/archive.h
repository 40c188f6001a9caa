// A .tar.gz in memory: POSIX ustar entries, then gzip. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace spoke::ctl {

// One regular file, mode 0600, padded to whole blocks. `name` is at most 100 bytes of ASCII, not
// absolute, without ".."; `content` is less than 8 GiB: anything else is a bug in the caller.
// `unix_seconds` is when it was last modified.
std::string TarEntry(std::string_view name, std::string_view content, int64_t unix_seconds);

// What ends an archive: two empty blocks.
std::string TarEnd();

// `data` as one gzip member without name or time, so that equal input gives equal output.
// Errors: kInternal (the library refuses, or has no memory).
absl::StatusOr<std::string> Gzip(std::string_view data);

}  // namespace spoke::ctl
