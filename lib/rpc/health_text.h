// The texts of health: where it is served, and the reasons that travel with an answer. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace spoke::rpc {

// The most bytes of reasons. gRPC lets a call's metadata have 8 KiB, of which base64 takes a
// quarter.
inline constexpr size_t kMaxReasonBytes = 4096;
inline constexpr size_t kMaxReasons = 64;

// Joins the reasons to a line each, without control characters, of at most kMaxReasonBytes; what
// does not fit is counted in the last line.
std::string JoinReasons(const std::vector<std::string>& reasons);

// Splits what somebody has sent into its lines, bounded and without control characters; empty ones
// are left out.
std::vector<std::string> SplitReasons(std::string_view text);

// Checks for unix:/an/absolute/path or host:port. Errors: kInvalidArgument (neither; the path is
// longer than the 107 bytes that unix(7) lets it have).
absl::Status CheckHealthAddress(std::string_view address);

// Returns "/run/spoke/x.sock" for "unix:/run/spoke/x.sock"; empty: not a unix socket.
std::string_view SocketPathOf(std::string_view address);

}  // namespace spoke::rpc
