// Whether the server can take changes: the loop says so, and probes and whoever asks its gRPC
// servers are told.
#pragma once

#include <grpcpp/server.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "lib/daemon/served_health.h"

namespace spoke::ipam {

// Thread-safe.
class Readiness {
 public:
  // Borrows `health`.
  explicit Readiness(daemon::ServedHealth& health) : health_(health) {}

  // Tells it as the standing of `service` in the standard health service of `server` too, which
  // knows nothing of it until the next SetWritable(). Borrows `server`, which must live until
  // nobody calls SetWritable() any more.
  void ShowOn(grpc::Server& server, std::string service);

  // Tells whether the store takes writes; the server is ready then.
  void SetWritable(bool writable);

 private:
  daemon::ServedHealth& health_;
  absl::Mutex mutex_;
  std::vector<std::pair<grpc::Server*, std::string>> shown_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spoke::ipam
