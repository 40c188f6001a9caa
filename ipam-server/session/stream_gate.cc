#include "ipam-server/session/stream_gate.h"

#include <algorithm>

#include "fmt/core.h"
#include "ipam-server/enroll/node_identity.h"
#include "lib/base/status.h"
#include "lib/base/version_skew.h"

namespace spoke::ipam {

absl::Status StreamGate::CheckOrder(bool is_hello) const {
  if (is_hello != node_.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(is_hello ? "a second Hello on one stream"
                                             : "the first message must be Hello");
}

absl::StatusOr<bool> StreamGate::Admit(node_api::Hello& hello) {
  bool is_instance_proved = false;
  if (rules_.check_peer_name) {
    const std::string& name = hello.node.node_name;
    if (std::find(names_.begin(), names_.end(), name) == names_.end()) {
      return absl::PermissionDeniedError(
          fmt::format("the certificate does not bear the node name {}", name));
    }
    // What the certificate proves counts, whatever the agent says.
    ASSIGN_OR_RETURN(const NodeIdentity proved, IdentityIn(uris_, name));
    RETURN_IF_ERROR(TakeIdentity(proved, hello));
    is_instance_proved = !proved.instance.empty();
  }
  // The agent compares too; it hears our version at the end of the call.
  RETURN_IF_ERROR(base::CheckSkew({"spoke-netagent", hello.node.agent_version},
                                  {"spoke-ipam-server", rules_.server_version}));
  node_ = KeyOf(hello);
  return is_instance_proved;
}

}  // namespace spoke::ipam
