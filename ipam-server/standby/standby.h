// Becoming the server that leads: at once where nobody does, or after standing by.
//
// While it stands by, a server keeps a mirror of the records, says so to whoever asks for its
// health, metrics or status, and has no port for agents. It campaigns when nobody leads any more,
// or when the leader's process is known to be gone (overthrow.h).
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "ipam-server/config.h"
#include "ipam-server/standby/standby_port.h"
#include "ipam-server/store/etcd/etcd_store.h"
#include "lib/daemon/served_health.h"
#include "lib/os/signals.h"
#include "lib/telemetry/log.h"

namespace spoke::ipam {

// What leading needs, and keeps until it is over.
struct Led {
  std::unique_ptr<StandbyPort> standbys;  // Null: they notice by the lease only.
  std::unique_ptr<EtcdStore> store;       // Null: a signal has come first.
  // Whether this server has seen all that was stored since a leader found the store to be the
  // newest: then the mark beside the store need not be doubted.
  bool store_proven = false;
};

struct StandbyEdges {
  daemon::ServedHealth& health;
  const os::SignalWaiter& signals;
  telemetry::Log& log;
};

// Returns once this server leads, or a signal has come. `options` is for config.etcd, without the
// leadership's address. Errors: as EtcdStore::Open() but for kAlreadyExists, and kUnavailable only
// where the records could not be read at all; what a listener says that could not be opened. A
// server that stands by already goes on whatever etcd says, and tells it by its health.
absl::StatusOr<Led> Lead(const ServerConfig& config, EtcdOptions options,
                         const StandbyEdges& edges);

}  // namespace spoke::ipam
