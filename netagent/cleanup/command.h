// The commands spoke-netagent --cleanup and --hold: what a pod does at and after a cleanup.
#pragma once

#include "lib/daemon/daemon_main.h"
#include "netagent/config.h"

namespace spoke::netagent {

// Returns the command --cleanup; it starts no agent, and asks nobody. Exit codes: 0 nothing of the
// agent's is left, 1 something is: pods use it, an agent runs, or it could not be removed.
daemon::Command CleanupCommand();

// Returns the command --hold: it does nothing until a signal, and then exits with 0.
daemon::Command HoldCommand();

}  // namespace spoke::netagent
