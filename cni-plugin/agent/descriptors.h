// Standard input and output, of which others have the other end: read whole and written whole,
// under a deadline.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cni-plugin/cni_error.h"

namespace spoke::cni {

inline constexpr size_t kMaxInputBytes = 4 << 20;

// Reads all of `fd` up to its end. The result lies in `buffer` if it is smaller, else in
// `overflow`. Errors: code 5 (unreadable, longer than kMaxInputBytes, or not closed within
// `deadline_ms`).
Expected<std::string_view> ReadWhole(int fd, int deadline_ms, std::span<char> buffer,
                                     std::string& overflow);

// Returns false when not all was taken, because the other end is closed, full for `deadline_ms`, or
// broken.
bool WriteWhole(int fd, std::string_view text, int deadline_ms);

}  // namespace spoke::cni
