// Whether the server does its work: it can write, and it leads. Probes are told, and who asks the
// standard health service of its gRPC servers.
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

  // Shows it as the standing of `service` on `server` too, which knows nothing of it until it is
  // told next. Borrows `server`, which must live until nobody tells anything any more.
  void ShowOn(grpc::Server& server, std::string service);

  // Tells whether the store takes writes; from the first call on the server may be ready.
  void SetWritable(bool writable);
  // Tells whether this server surely leads; it does until it is told otherwise.
  void SetLeading(bool leading);

 private:
  void Say() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  daemon::ServedHealth& health_;
  absl::Mutex mutex_;
  std::vector<std::pair<grpc::Server*, std::string>> shown_ ABSL_GUARDED_BY(mutex_);
  bool writable_ ABSL_GUARDED_BY(mutex_) = true;
  bool leading_ ABSL_GUARDED_BY(mutex_) = true;
};

}  // namespace spoke::ipam
