#include "netagent/cni/cni_errors.h"

#include <string_view>

#include "lib/base/status.h"
#include "lib/base/version_skew.h"

namespace spoke::netagent {
namespace {

constexpr std::string_view kSeeLog =
    "see the agent's log on the node: journalctl -u spoke-netagent";

uint32_t CodeOf(absl::StatusCode code, CniVerb verb) {
  if (verb == CniVerb::kStatus) {
    return code == absl::StatusCode::kDataLoss ? kCniLimitedConnectivity : kCniNotAvailable;
  }
  switch (code) {
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kAborted:
      return kCniTryAgainLater;
    case absl::StatusCode::kInvalidArgument:
      return kCniInvalidConfiguration;
    case absl::StatusCode::kFailedPrecondition:
      return kCniInvalidNetns;
    case absl::StatusCode::kAlreadyExists:
      return kCniAlreadyExists;
    case absl::StatusCode::kDataLoss:
      return kCniCheckFailed;
    default:
      return kCniInternal;
  }
}

std::string_view RemedyOf(absl::StatusCode code, CniVerb verb) {
  switch (code) {
    case absl::StatusCode::kResourceExhausted:
      return "addresses come when pods end and their cooldown is over, or when the server gives "
             "this "
             "node more: the runtime tries again; if it lasts, ask spokectl explain pod "
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
      return verb == CniVerb::kStatus
                 ? "see repair events in the agent's log: journalctl -u spoke-netagent"
                 : "the agent mends what it can within 30 s; if it stays, delete the pod";
    default:
      return kSeeLog;
  }
}

}  // namespace

CniFailure FailureOf(const absl::Status& status, CniVerb verb) {
  CniFailure failure{.code = CodeOf(status.code(), verb),
                     .message = std::string(base::MessageOf(status)),
                     .details = std::string(RemedyOf(status.code(), verb))};
  if (failure.message.empty()) failure.message = absl::StatusCodeToString(status.code());
  return failure;
}

std::optional<CniFailure> RefusalOfPlugin(std::string_view plugin_version,
                                          std::string_view agent_version, CniVerb verb) {
  const auto plugin = base::ParseVersion(plugin_version);
  const auto agent = base::ParseVersion(agent_version);
  if (verb != CniVerb::kAdd || !plugin.ok() || !agent.ok() || plugin->major == agent->major) {
    return std::nullopt;
  }
  const absl::Status skew =
      base::CheckSkew({"the plugin", plugin_version}, {"spoke-netagent", agent_version});
  return CniFailure{.code = kCniVersionSkew,
                    .message = std::string(base::MessageOf(skew)),
                    .details =
                        "install the plugin of the agent's version on this node; an agent "
                        "with cni.bin_dir in its configuration does that itself"};
}

}  // namespace spoke::netagent
