// The operators' API as gRPC serves it, and the gate before it: who calls has a role that may
// (operators/role.h), and a version that works with ours (ADR 20), or nothing is done. A client
// says its version in the metadata `spoke-version`; one that says none is let in. GetStatus is
// answered whatever the version, so that `spokectl version` can show both.
#pragma once

#include <grpcpp/impl/service_type.h>

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "ipam-server/admin/admin_service.h"
#include "ipam-server/operators/role.h"
#include "ipam-server/revocation/revocations.h"
#include "lib/os/clock.h"
#include "lib/telemetry/log.h"

namespace spoke::ipam {

// Thread-safe, as the service behind it is. Errors of every call, beside those of the service: as
// CallerOf(), Revocations::Check() of the certificate's serial number, and Authorize();
// FAILED_PRECONDITION, with base::CheckSkew()'s text, except of GetStatus. A refusal for want of a
// role is in the log (operator_refused), once a second at most.
class AdminGate final : public grpc::Service {
 public:
  // All borrowed. `clock` tells the time of day.
  struct Edges {
    const Revocations& revocations;
    const os::Clock& clock;
    telemetry::Log& log;
  };
  // Borrows `behind` as well. `version`: this server's.
  AdminGate(std::string version, AdminService& behind, const Edges& edges);

 private:
  // Lets a call through to `call` of the service behind, if it may pass. `Answer` is a message, or
  // the writer of a stream of them.
  template <typename Request, typename Answer>
  void Serve(std::string_view name, absl::Status (AdminService::*call)(const grpc::ServerContext&,
                                                                       const Request&, Answer&));
  absl::Status Check(const grpc::ServerContext& context, const Asked& asked);
  absl::Status CheckRole(const grpc::ServerContext& context, const Asked& asked) const;
  absl::Status CheckVersion(const grpc::ServerContext& context) const;
  void TellRefused(const grpc::ServerContext& context, const Asked& asked,
                   const absl::Status& refused);

  const std::string version_;
  AdminService& behind_;
  const Edges edges_;
  std::deque<std::string> methods_;  // Their full names, which gRPC borrows.
  absl::Mutex mutex_;
  absl::Time tell_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  uint64_t untold_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace spoke::ipam
