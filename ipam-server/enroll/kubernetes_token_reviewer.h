// TokenReviewer by the cluster's API server. Takes the rights to create tokenreviews
// (authentication.k8s.io) and to get pods in the agents' namespace.
#pragma once

#include "ipam-server/enroll/token_reviewer.h"
#include "lib/kubernetes/api.h"

namespace spoke::ipam {

class KubernetesTokenReviewer final : public TokenReviewer {
 public:
  // Borrows `api`.
  explicit KubernetesTokenReviewer(const kubernetes::Api& api) : api_(api) {}

  absl::StatusOr<TokenFacts> Review(const std::string& token, const std::string& audience) override;
  absl::StatusOr<PodFacts> ReadPod(const std::string& k8s_namespace,
                                   const std::string& name) override;
  absl::StatusOr<NodeFacts> ReadNode(const std::string& name) override;

 private:
  const kubernetes::Api& api_;
};

}  // namespace spoke::ipam
