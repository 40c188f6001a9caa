// The part of an agent's configuration that the checks need, for a program that is not the agent.
// The agent itself judges the rest: spoke-netagent --check-config.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "lib/config/variables.h"
#include "lib/node_checks/facts/facts.h"

namespace spoke::node_checks {

// Puts what `text`, the content of `file`, says into `settings`; what it does not say stays. A
// value that names an environment variable (${NAME}, lib/config/variables.h) which `variables` does
// not know is passed over, since the agent may have other variables. Pure. Errors:
// kInvalidArgument (one line a mistake, "FILE:LINE: KEY: ..."), and then what was right is used.
absl::Status TakeAgentSettings(std::string_view text, const std::string& file,
                               const config::VariableLookup& variables, NodeSettings& settings);

}  // namespace spoke::node_checks
