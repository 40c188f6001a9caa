// Tells whether somebody listens at the server's address and the agent's socket, and reads from the
// agent's configuration where these are. Thread-safe (no state).
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "lib/config/variables.h"
#include "lib/node_checks/facts/facts.h"

namespace spoke::node_checks {

// Opens a TCP connection to `target` ("host:port", "[::1]:7443"), and closes it as soon as it
// stands; every address of the name is tried, all within `timeout` (to which the name server's own
// patience is added). Errors: kInvalidArgument (no HOST:PORT); kNotFound (the name has no address);
// kUnavailable (refused, or no way there); kDeadlineExceeded (no answer).
absl::Status TryToConnect(const std::string& target, absl::Duration timeout);

// Returns OK when a process listens at the CNI socket. Errors: kNotFound (no such file);
// kUnavailable (nobody listens); kPermissionDenied.
absl::Status TryAgentSocket(const std::string& path);

// The part of an agent's configuration that the checks need, for a program that is not the agent.
// The agent itself judges the rest: spoke-netagent --check-config.

// Puts what `text`, the content of `file`, says into `settings`; what it does not say stays. A
// value that names an environment variable (${NAME}, lib/config/variables.h) which `variables` does
// not know is passed over, since the agent may have other variables. Pure. Errors:
// kInvalidArgument (one line a mistake, "FILE:LINE: KEY: ..."), and then what was right is used.
absl::Status TakeAgentSettings(std::string_view text, const std::string& file,
                               const config::VariableLookup& variables, NodeSettings& settings);

}  // namespace spoke::node_checks
