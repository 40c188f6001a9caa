// The server once its store is open: it loads the state, turns the loop, and serves agents and
// operators until a signal comes.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "ipam-server/config.h"
#include "ipam-server/store/store.h"
#include "lib/daemon/served_health.h"
#include "lib/os/signals.h"
#include "lib/telemetry/log.h"

namespace spoke::ipam {

// The health of this program, whether it leads or stands by. The heartbeat with the number
// kLoopHeartbeat is that of the loop that decides; it is silent for as long as a commit takes.
daemon::HealthSettings HealthOf(const ServerConfig& config);
inline constexpr size_t kLoopHeartbeat = 0;

// What a server runs with; it outlives the server.
struct ServerEdges {
  Store& store;  // It belongs to this process alone, or this process leads.
  daemon::ServedHealth& health;
  const os::SignalWaiter& signals;
  telemetry::Log& log;
  // For how long no other server can lead, from now on; without etcd, for ever.
  std::function<absl::Duration()> margin = [] { return absl::InfiniteDuration(); };
  // The leadership under which the store is written; 0: it has no leaders.
  int64_t leadership = 0;
  // Whether a mark beside the store that is of this boot shows how far the store had come: no other
  // server has written the store since, or this one has followed what was written.
  bool trusts_mark = true;
  // What etcd says when it refuses this server; OK: it does not, or there is none.
  std::function<absl::Status()> trouble = [] { return absl::OkStatus(); };
};

// Serves from the store, and returns OK after a signal. While the margin is not above zero, agents
// are sent away, and it is not ready. Call it once. Errors: as LoadState() for what is stored; what
// a listener, a file or the cloud's edge says that could not be opened. Nothing was decided then.
absl::Status RunServer(const ServerConfig& config, const ServerEdges& edges);

}  // namespace spoke::ipam
