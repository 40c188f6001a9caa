#include "ipam-server/enroll/enrollment_decision.h"

#include <algorithm>

#include "fmt/format.h"
#include "lib/base/dns_name.h"

namespace spoke::ipam {
namespace {

constexpr size_t kMaxVmIdBytes = 256;
// The API server's tokens have some 1,200 bytes.
constexpr size_t kMaxTokenBytes = 16U << 10U;
// A certificate has some 2 KiB, most of which are labels.
constexpr size_t kMaxCertificateBytes = 12U << 10U;

}  // namespace

absl::Status CheckEnrollRequest(std::string_view node_name, std::string_view vm_id,
                                std::string_view token, std::string_view certificate) {
  if (!base::IsDnsName(node_name)) {
    return absl::InvalidArgumentError(
        "node_name must be a name of at most 253 lower-case letters, digits, - and ., as "
        "Kubernetes has nodes'; set the agent's node_name");
  }
  const auto is_text = [](char c) { return c > ' ' && c < 0x7F; };
  if (vm_id.size() > kMaxVmIdBytes || !std::all_of(vm_id.begin(), vm_id.end(), is_text)) {
    return absl::InvalidArgumentError(
        fmt::format("vm_id must be at most {} printable signs without a blank", kMaxVmIdBytes));
  }
  if (certificate.size() > kMaxCertificateBytes) {
    return absl::InvalidArgumentError(fmt::format("certificate has {} bytes; at most {} are taken",
                                                  certificate.size(), kMaxCertificateBytes));
  }
  if (token.empty() && !certificate.empty()) return absl::OkStatus();
  if (token.empty() || token.size() > kMaxTokenBytes ||
      !std::all_of(token.begin(), token.end(), is_text)) {
    return absl::InvalidArgumentError(
        fmt::format("token must be a service account's, of 1 to {} bytes; it has {}",
                    kMaxTokenBytes, token.size()));
  }
  return absl::OkStatus();
}

absl::Status CheckToken(const TokenFacts& token, const EnrollRules& rules) {
  if (!token.authenticated) {
    return absl::UnauthenticatedError(
        fmt::format("the token is no good: {}",
                    token.error.empty() ? "the API server does not say why" : token.error));
  }
  // A server that knows no audiences says nothing of them, and its tokens are good for anybody.
  if (std::find(token.audiences.begin(), token.audiences.end(), rules.audience) ==
      token.audiences.end()) {
    return absl::UnauthenticatedError(fmt::format(
        "the token is not for the audience {}; project one that is into the pod", rules.audience));
  }
  const std::string user =
      fmt::format("system:serviceaccount:{}:{}", rules.k8s_namespace, rules.service_account);
  if (token.user != user) {
    return absl::PermissionDeniedError(
        fmt::format("the token is of {}, and agents are {}", token.user, user));
  }
  if (token.pod_name.empty() || token.pod_uid.empty()) {
    return absl::PermissionDeniedError(
        "the token is bound to no pod; it must be projected into the agent's");
  }
  return absl::OkStatus();
}

absl::Status CheckPod(const TokenFacts& token, const PodFacts& pod, std::string_view node_name,
                      const EnrollRules& rules) {
  const std::string name = fmt::format("pod {}/{}", rules.k8s_namespace, token.pod_name);
  if (pod.uid != token.pod_uid || pod.name != token.pod_name ||
      pod.k8s_namespace != rules.k8s_namespace) {
    return absl::UnauthenticatedError(
        fmt::format("the token is of an earlier {}, which is gone", name));
  }
  if (pod.service_account != rules.service_account) {
    return absl::PermissionDeniedError(fmt::format("{} runs as {}, and agents run as {}", name,
                                                   pod.service_account, rules.service_account));
  }
  if (pod.node_name != node_name) {
    return absl::PermissionDeniedError(fmt::format(
        "{} runs on {}, and asks for node {}; set the agent's node_name to spec.nodeName", name,
        pod.node_name.empty() ? "no node" : "node " + pod.node_name, node_name));
  }
  return absl::OkStatus();
}

}  // namespace spoke::ipam
