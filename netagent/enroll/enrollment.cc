#include "netagent/enroll/enrollment.h"

namespace spoke::netagent {

absl::Time RenewAt(absl::Time not_before, absl::Time not_after, double jitter) {
  const absl::Duration life = not_after - not_before;
  return not_before + life / 2 + life / 30 * jitter;
}

std::string EnrollRemedy(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return "compare this pod with the manifests: it needs node_name from spec.nodeName, the "
             "agents' service account, its token projected for the server's audience, and the "
             "ConfigMap spoke-ca, which the server writes when it starts";
    case absl::StatusCode::kInvalidArgument:
      return "node_name must be the node's name in Kubernetes";
    case absl::StatusCode::kResourceExhausted:
      return "none: it is tried again";
    case absl::StatusCode::kFailedPrecondition:
      return "the server's rights are too few, or its authority is another one than ca_file: see "
             "the server's log";
    default:
      return "is enroll.server the server's enroll port, does the server run, and does its "
             "certificate bear enroll.server_name?";
  }
}

}  // namespace spoke::netagent
