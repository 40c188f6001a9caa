// A daemon's health: serves what it says of itself, and watches whether its loops turn.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "lib/os/heartbeat.h"
#include "lib/rpc/health_service.h"
#include "lib/telemetry/log.h"
#include "lib/telemetry/text_endpoint.h"

namespace spoke::daemon {

struct HealthSettings {
  std::string address;             // The address as HealthService has it; empty: it is not served.
  std::string http;                // host:port for /livez and /readyz; empty: they are not served.
  std::vector<std::string> loops;  // The loops' names, for the reasons.
  absl::Duration longest_silence;  // The longest silence of a loop that is not stuck.
};

// The health of a daemon: by gRPC's protocol, and as Kubernetes' own programs say it, by /livez and
// /readyz over HTTP, which answer 200, or 503 and a line for each reason. Thread-safe. Make it
// early, when its lock says that this program is the only one, and before other threads run; the
// loops that beat its heartbeats must end before it does.
class ServedHealth {
 public:
  // Starts to serve. A failure to serve is a warning (health_not_served) and no more: a program
  // that works and cannot say so is better than none. Borrows `log`.
  ServedHealth(HealthSettings settings, telemetry::Log& log);

  // Says why the program is not ready; none: it is ready. Until the first call it is starting. Each
  // change is logged.
  void Say(rpc::Reasons not_ready);

  // Returns the heartbeat of the loop with this number among the settings, which beats it at each
  // turn.
  os::Heartbeat& heartbeat(size_t loop) { return (*heartbeats_)[loop]; }

  int http_port() const { return http_ == nullptr ? 0 : http_->port(); }  // 0: not served.

 private:
  // Keeps in `to` what serves at the address, or warns.
  template <typename Served>
  void Keep(const std::string& address, absl::StatusOr<Served> opened, Served& to);

  telemetry::Log& log_;
  const std::shared_ptr<std::vector<os::Heartbeat>> heartbeats_;
  std::unique_ptr<rpc::HealthService> service_;  // The service; null: not served.
  absl::Mutex mutex_;
  bool said_any_ ABSL_GUARDED_BY(mutex_) = false;
  rpc::Reasons said_ ABSL_GUARDED_BY(mutex_) = {"it is starting"};
  std::unique_ptr<telemetry::TextEndpoint> http_;  // Null: not served. Its thread reads the others.
};

// Returns a reason for each loop that has been silent for longer. There are as many heartbeats as
// names.
rpc::Reasons StuckLoops(const std::vector<std::string>& names,
                        const std::vector<absl::Duration>& silences, absl::Duration longest);

}  // namespace spoke::daemon
