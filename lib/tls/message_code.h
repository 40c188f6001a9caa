// Codes that prove who has written a short text: HMAC with SHA-256 (RFC 2104). Pure, thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace spoke::tls {

// Returns 32 bytes that nobody without `key` can make for `text`.
std::string CodeOf(std::string_view key, std::string_view text);

// Returns whether `code` is that of `text`. Takes as long for a wrong code as for the right one.
bool IsCodeOf(std::string_view code, std::string_view key, std::string_view text);

// Returns so many bytes of the system's random numbers. Errors: kInternal (there are none).
absl::StatusOr<std::string> RandomBytes(size_t count);

}  // namespace spoke::tls
