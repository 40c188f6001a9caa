// Words to a command and its arguments.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "admin-cli/command.h"

namespace spoke::ctl {

struct ParsedLine {
  // The status; kInvalidArgument has a sentence that says which word is wrong. `path` is then as
  // far as it was understood, for "Try ... --help".
  absl::Status status;
  CommandPath path;  // Begins with the root; borrowed from it.
  Arguments arguments;
  // The value of --timeout of every command, whatever the verb's own one says.
  absl::Duration timeout;
};

// `words` are those behind the program's name. When --help or --version is among the arguments,
// nothing else has been checked. `variable` reads the environment.
ParsedLine ParseLine(const Command& root, const std::vector<std::string>& words,
                     const std::function<std::string(const std::string&)>& variable);

}  // namespace spoke::ctl
