// Carries out what the plugin asks, and gives the outcome in CNI's terms.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/version.h"
#include "lib/cni_api/wire.h"
#include "lib/os/unique_fd.h"
#include "lib/telemetry/log.h"
#include "netagent/attach/attachment_checker.h"
#include "netagent/attach/attachments.h"
#include "netagent/cni/add_service.h"
#include "netagent/cni/cni_server.h"

namespace spoke::netagent {

// Reads what a CHECK expects. Errors: kInvalidArgument (a MAC or an address that cannot be read, or
// more than kMaxRequests addresses). Pure.
absl::StatusOr<CheckExpectation> ExpectationOf(const cni::Attachment& expected);

// Reads the valid attachments of a GC; those without a container or a name are left out, for no
// attachment of ours is like that. Pure.
std::vector<AttachmentKey> ValidOf(const cni::Request& request);

// Not thread-safe; belongs to the loop's thread.
class CniHandler {
 public:
  struct Edges {
    Attachments& attachments;
    AddService& adds;
    AttachmentChecker* checker = nullptr;  // Null: the verb CHECK is not known.
    telemetry::Log& log;
    // Whether STATUS fails while every address of a node with pods is in use, as the CNI spec has
    // it. See AgentConfig::strict_status for what that does to a node.
    bool strict_status = true;
    std::string_view version = base::kVersion;  // This agent's, to compare with a plugin's.
  };
  // Borrows the edges.
  explicit CniHandler(const Edges& edges) : edges_(edges) {}

  // Answers each request, ADD perhaps later. An ADD of a plugin of another major version than the
  // agent's is refused. Within one major version, what they say to each other only grows, and a pod
  // that is to go or to be looked at is never kept waiting for an upgrade; so a plugin that says no
  // version that can be read is served as well.
  void Handle(const cni::Request& request, os::UniqueFd pod_netns, Responder responder);

 private:
  void WarnOf(const absl::Status& skew, const std::string& plugin_version);
  absl::Status Del(const cni::Request& request);
  absl::Status Check(const cni::Request& request, const os::UniqueFd& pod_netns);
  absl::Status CollectGarbage(const cni::Request& request);
  absl::Status Status();
  void LogOutcome(const cni::Request& request, const absl::Status& status);

  const Edges edges_;
  std::optional<absl::StatusCode> last_status_;  // The last answer to STATUS.
  std::string warned_plugin_;                    // The version that was last warned of.
};

}  // namespace spoke::netagent
