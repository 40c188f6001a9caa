// Runs one command line, from words to exit code.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "admin-cli/command.h"
#include "admin-cli/session.h"

namespace spoke::ctl {

// Words to a command and its arguments.

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

// The exit codes, as docs/CLI.md and --help have them.
inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitNoServer = 3;
inline constexpr int kExitNoSuchThing = 4;
inline constexpr int kExitRefused = 5;

int ExitCodeOf(const absl::Status& status);

// Returns the words that called this program, by what it was started as: kubectl starts what is
// called kubectl-spoke for "kubectl spoke".
std::string ProgramOf(std::string_view started_as);

// Runs what `words` (those behind "spokectl") say; what it prints goes to the world's console.
int Run(const std::vector<std::string>& words, const World& world);

}  // namespace spoke::ctl
