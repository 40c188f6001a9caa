// Tells whether somebody listens at an address. Thread-safe (no state).
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace spoke::node_checks {

// Opens a TCP connection to `target` ("host:port", "[::1]:7443"), and closes it as soon as it
// stands; every address of the name is tried, all within `timeout` (to which the name server's own
// patience is added). Errors: kInvalidArgument (no HOST:PORT); kNotFound (the name has no address);
// kUnavailable (refused, or no way there); kDeadlineExceeded (no answer).
absl::Status TryToConnect(const std::string& target, absl::Duration timeout);

// Returns OK when a process listens at the CNI socket. Errors: kNotFound (no such file);
// kUnavailable (nobody listens); kPermissionDenied.
absl::Status TryAgentSocket(const std::string& path);

}  // namespace spoke::node_checks
