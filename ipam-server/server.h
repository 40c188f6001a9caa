// The server once its store is open: it loads the state, turns the loop, and serves agents and
// operators until a signal comes.
#pragma once

#include "absl/status/status.h"
#include "ipam-server/config.h"
#include "ipam-server/store/store.h"
#include "lib/os/signals.h"
#include "lib/telemetry/log.h"

namespace spoke::ipam {

// Serves from `store`, which belongs to this process alone, and returns OK after a signal that
// `signals` waits for. Call it once, before other threads run. Errors: as LoadState() for what is
// stored; what a listener, a file or the cloud's edge says that could not be opened. Nothing was
// decided then.
absl::Status RunServer(const ServerConfig& config, Store& store, const os::SignalWaiter& signals,
                       telemetry::Log& log);

}  // namespace spoke::ipam
