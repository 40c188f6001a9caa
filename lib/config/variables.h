// "${NAME}" in the values of a configuration: environment variables, so that one file serves many
// nodes. Pure: the lookup is the caller's.
//
// NAME is letters, digits and "_", no digit first (IEEE Std 1003.1, 8.1). "$${" stands for "${"
// itself; any other "$" for itself. What a variable holds is not looked at again, and keys never
// are. A value becomes what its reader makes of the text that results: "port: ${PORT}" is a number,
// and `"${PORT}"` is not, as without variables. Inside [] and {} YAML wants the quotes.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace spoke::config {

// Returns what the variable holds, nullopt when it is not set.
using VariableLookup = std::function<std::optional<std::string>(const std::string& name)>;

// The most that a variable may hold; a path has at most that.
inline constexpr size_t kMaxVariableBytes = 4096;

// Returns `text` with its variables replaced. Errors: kInvalidArgument, with what to do (malformed;
// not set; what it holds is too long, or has control characters or bytes that are not UTF-8).
absl::StatusOr<std::string> ExpandVariables(std::string_view text, const VariableLookup& lookup);

}  // namespace spoke::config
