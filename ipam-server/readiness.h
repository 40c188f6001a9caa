// Whether the server does its work: it can write, and it leads. Probes are told, and who asks the
// standard health service of its gRPC servers.
#pragma once

#include <grpcpp/server.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
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

  // Tells why the store takes no writes; OK: it does. From the first call on the server may be
  // ready.
  void SetWritable(absl::Status why_not);
  // Tells why this server may lead no more, as etcd says it; OK: it surely leads, and does until it
  // is told otherwise.
  void SetLeading(absl::Status why_not);

 private:
  void Say() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  daemon::ServedHealth& health_;
  absl::Mutex mutex_;
  std::vector<std::pair<grpc::Server*, std::string>> shown_ ABSL_GUARDED_BY(mutex_);
  absl::Status not_writable_ ABSL_GUARDED_BY(mutex_);
  absl::Status not_leading_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spoke::ipam
