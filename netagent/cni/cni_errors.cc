#include "netagent/cni/cni_errors.h"

#include <string>
#include <string_view>

#include "lib/base/status.h"

namespace spoke::netagent {
namespace {

constexpr std::string_view kSeeLog =
    "see the agent's log on the node: journalctl -u spoke-netagent";

uint32_t CodeOf(absl::StatusCode code, cni::Verb verb) {
  if (verb == cni::Verb::kStatus) {
    return code == absl::StatusCode::kDataLoss ? cni::kLimitedConnectivity : cni::kNotAvailable;
  }
  switch (code) {
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kAborted:
      return cni::kTryAgainLater;
    case absl::StatusCode::kInvalidArgument:
      return cni::kInvalidConfig;
    case absl::StatusCode::kFailedPrecondition:
      return cni::kInvalidNetns;
    case absl::StatusCode::kAlreadyExists:
      return cni::kAlreadyExists;
    case absl::StatusCode::kDataLoss:
      return cni::kCheckFailed;
    default:
      return cni::kInternal;
  }
}

std::string_view RemedyOf(absl::StatusCode code, cni::Verb verb) {
  switch (code) {
    case absl::StatusCode::kResourceExhausted:
      return "addresses come when pods end and their cooldown is over, or when the server gives "
             "this node more: the runtime tries again; if it lasts, ask spokectl explain pod "
             "NAMESPACE/NAME";
    case absl::StatusCode::kUnavailable:
      return "the runtime tries again; if it lasts, see the agent's log on the node: journalctl -u "
             "spoke-netagent";
    case absl::StatusCode::kPermissionDenied:
      return "give the namespace a pool that this node draws from, or run the pod on another node";
    case absl::StatusCode::kInvalidArgument:
      return "correct what the pod or the network configuration asks for";
    case absl::StatusCode::kFailedPrecondition:
      return "CNI_NETNS has to name a network namespace of the pod's own";
    case absl::StatusCode::kAlreadyExists:
      return "DEL this attachment first; if that does not help, something else made an interface "
             "of "
             "that name in the pod";
    case absl::StatusCode::kDeadlineExceeded:
      return "the runtime tries again; if it lasts, the node is overloaded";
    case absl::StatusCode::kDataLoss:
      return verb == cni::Verb::kStatus
                 ? "see repair events in the agent's log: journalctl -u spoke-netagent"
                 : "the agent mends what it can within 30 s; if it stays, delete the pod";
    default:
      return kSeeLog;
  }
}

}  // namespace

cni::Error ErrorOf(const absl::Status& status, cni::Verb verb) {
  cni::Error error{.code = CodeOf(status.code(), verb),
                   .message = std::string(base::MessageOf(status)),
                   .details = std::string(RemedyOf(status.code(), verb))};
  if (error.message.empty()) error.message = absl::StatusCodeToString(status.code());
  return error;
}

}  // namespace spoke::netagent
