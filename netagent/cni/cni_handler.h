// Carries out what the plugin asks, and gives the outcome in CNI's terms.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "lib/base/version.h"
#include "lib/os/unique_fd.h"
#include "lib/telemetry/log.h"
#include "netagent/attach/attachment_checker.h"
#include "netagent/attach/attachments.h"
#include "netagent/cni/add_service.h"
#include "netagent/cni/cni_errors.h"
#include "netagent/cni/responder.h"
#include "proto/spoke/v1/cni.pb.h"

namespace spoke::netagent {

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

  // Answers each request, ADD perhaps later.
  void Handle(const v1::CniRequest& request, os::UniqueFd pod_netns, Responder responder);

 private:
  void WarnOfSkew(std::string_view plugin_version);
  absl::Status Del(const v1::CniRequest& request);
  absl::Status Check(const v1::CniRequest& request, const os::UniqueFd& pod_netns);
  absl::Status CollectGarbage(const v1::CniRequest& request);
  absl::Status Status();
  void LogOutcome(const v1::CniRequest& request, CniVerb verb, const absl::Status& status);

  const Edges edges_;
  std::optional<absl::StatusCode> last_status_;  // The last answer to STATUS.
  std::string warned_plugin_;                    // The version that was last warned of.
};

}  // namespace spoke::netagent
