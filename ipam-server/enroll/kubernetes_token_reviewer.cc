#include "ipam-server/enroll/kubernetes_token_reviewer.h"

#include "fmt/core.h"
#include "ipam-server/enroll/review_json.h"
#include "lib/base/dns_name.h"
#include "lib/base/status.h"
#include "lib/kubernetes/answer.h"

namespace spoke::ipam {
namespace {

// An answer that cannot be read is not the asker's mistake.
template <typename T>
absl::StatusOr<T> OrInternal(absl::StatusOr<T> parsed) {
  if (parsed.ok()) return parsed;
  return absl::InternalError(parsed.status().message());
}

}  // namespace

absl::StatusOr<TokenFacts> KubernetesTokenReviewer::Review(const std::string& token,
                                                           const std::string& audience) {
  ASSIGN_OR_RETURN(const http::Response response,
                   api_.Call("POST", "/apis/authentication.k8s.io/v1/tokenreviews",
                             TokenReviewRequest(token, audience)));
  RETURN_IF_ERROR(kubernetes::StatusOfAnswer(response, "review a token"));
  return OrInternal(ParseTokenReview(response.body));
}

absl::StatusOr<PodFacts> KubernetesTokenReviewer::ReadPod(const std::string& k8s_namespace,
                                                          const std::string& name) {
  if (!base::IsDnsName(k8s_namespace) || !base::IsDnsName(name)) {
    return absl::InvalidArgumentError(
        fmt::format("\"{}/{}\" is no pod's name", k8s_namespace, name));
  }
  ASSIGN_OR_RETURN(
      const http::Response response,
      api_.Call("GET", fmt::format("/api/v1/namespaces/{}/pods/{}", k8s_namespace, name)));
  RETURN_IF_ERROR(
      kubernetes::StatusOfAnswer(response, fmt::format("pod {}/{}", k8s_namespace, name)));
  return OrInternal(ParsePod(response.body));
}

absl::StatusOr<NodeFacts> KubernetesTokenReviewer::ReadNode(const std::string& name) {
  if (!base::IsDnsName(name)) {
    return absl::InvalidArgumentError(fmt::format("\"{}\" is no node's name", name));
  }
  ASSIGN_OR_RETURN(const http::Response response,
                   api_.Call("GET", fmt::format("/api/v1/nodes/{}", name)));
  RETURN_IF_ERROR(kubernetes::StatusOfAnswer(response, fmt::format("node {}", name)));
  return OrInternal(ParseNode(response.body));
}

}  // namespace spoke::ipam
