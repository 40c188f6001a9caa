// Runs one command line, from words to exit code.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "admin-cli/session.h"

namespace spoke::ctl {

// The exit codes, as docs/CLI.md and --help have them.
inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitNoServer = 3;
inline constexpr int kExitNoSuchThing = 4;
inline constexpr int kExitRefused = 5;

int ExitCodeOf(const absl::Status& status);

// Runs what `words` (those behind "spokectl") say; what it prints goes to the world's console.
int Run(const std::vector<std::string>& words, const World& world);

}  // namespace spoke::ctl
