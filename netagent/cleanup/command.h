// spoke-netagent --cleanup, and what a pod does after it.
#pragma once

#include "lib/daemon/daemon_main.h"
#include "netagent/config.h"

namespace spoke::netagent {

// The command; it starts no agent, and asks nobody. Exit codes: 0 nothing of the agent's is left,
// 1 something is: pods use it, an agent runs, or it could not be removed.
daemon::Command CleanupCommand();

// spoke-netagent --hold: does nothing until a signal, and then exits with 0.
daemon::Command HoldCommand();

}  // namespace spoke::netagent
