// Who holds a token, and what a pod or a node is, as the cluster knows it. Implementations:
// KubernetesTokenReviewer, PausingReviewer before it, and FakeTokenReviewer in tests; what they
// promise is in token_reviewer_contract.h.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "ipam-server/enroll/enrollment_decision.h"

namespace spoke::ipam {

// Thread-safe; calls may block for kubernetes::Api::kPatience.
//
// Errors of all: kUnavailable, kDeadlineExceeded (nobody could be asked; later),
// kFailedPrecondition (we may not ask; an operator has to let us), kInternal (an answer that is
// none).
class TokenReviewer {
 public:
  virtual ~TokenReviewer() = default;

  // A token that is no good, or not for `audience`, is an answer, with authenticated false.
  virtual absl::StatusOr<TokenFacts> Review(const std::string& token,
                                            const std::string& audience) = 0;

  // Errors: kNotFound; kInvalidArgument (names that no pod can have).
  virtual absl::StatusOr<PodFacts> ReadPod(const std::string& k8s_namespace,
                                           const std::string& name) = 0;

  // Errors: kNotFound; kInvalidArgument (a name that no node can have).
  virtual absl::StatusOr<NodeFacts> ReadNode(const std::string& name) = 0;
};

}  // namespace spoke::ipam
