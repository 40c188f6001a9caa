#include "ipam-server/enroll/kubernetes_api.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "fmt/core.h"
#include "ipam-server/json/json_text.h"
#include "lib/base/status.h"
#include "lib/http/curl_transport.h"
#include "lib/os/file.h"

namespace spoke::ipam {
namespace {

constexpr size_t kMaxTokenBytes = 64U << 10U;

// What a Status object (meta/v1) says; empty when it is none.
std::string MessageOfAnswer(const http::Response& response) {
  const auto json = ParseJsonObject(response.body);
  return json.ok() ? Excerpt(StringMember(*json, "message")) : "";
}

absl::StatusCode CodeOf(int status) {
  if (status == 404) return absl::StatusCode::kNotFound;
  if (status == 409) return absl::StatusCode::kAborted;
  if (status == 400 || status == 401 || status == 403 || status == 422) {
    return absl::StatusCode::kFailedPrecondition;
  }
  if (status == 429 || (status >= 500 && status < 600)) return absl::StatusCode::kUnavailable;
  return absl::StatusCode::kInternal;
}

}  // namespace

absl::StatusOr<ClusterAccess> InClusterAccess(
    const std::function<const char*(const char* name)>& environment, const std::string& directory) {
  const char* host = environment("KUBERNETES_SERVICE_HOST");
  const char* port = environment("KUBERNETES_SERVICE_PORT");
  if (host == nullptr || *host == '\0' || port == nullptr || *port == '\0') {
    return absl::FailedPreconditionError(
        "enroll needs the cluster's API server, and KUBERNETES_SERVICE_HOST and _PORT are not set: "
        "run as a pod, or give agents certificates by other means (tls in place of enroll)");
  }
  const bool is_v6 = std::string_view(host).find(':') != std::string_view::npos;
  ClusterAccess access{
      .url = fmt::format("https://{}:{}", is_v6 ? fmt::format("[{}]", host) : host, port),
      .ca_file = directory + "/ca.crt",
      .token_file = directory + "/token",
      .k8s_namespace = ""};
  for (const std::string& file : {access.ca_file, access.token_file}) {
    if (const auto read = os::ReadFile(file); !read.ok()) {
      return absl::FailedPreconditionError(
          fmt::format("{}; enroll needs the pod's service account: do not set "
                      "automountServiceAccountToken to false",
                      base::MessageOf(read.status())));
    }
  }
  if (auto own = os::ReadFile(directory + "/namespace"); own.ok()) {
    absl::StripTrailingAsciiWhitespace(&*own);
    access.k8s_namespace = *std::move(own);
  }
  return access;
}

absl::StatusOr<http::Response> KubernetesApi::Call(const std::string& method,
                                                   const std::string& path,
                                                   std::string body) const {
  auto token = os::ReadFile(access_.token_file, kMaxTokenBytes);
  if (!token.ok()) {
    return absl::FailedPreconditionError(
        fmt::format("our own service account's token: {}", base::MessageOf(token.status())));
  }
  http::Request request{.method = method, .url = access_.url + path, .headers = {}, .body = ""};
  request.headers.Add("Authorization",
                      absl::StrCat("Bearer ", absl::StripTrailingAsciiWhitespace(*token)));
  request.headers.Add("Accept", "application/json");
  if (!body.empty()) request.headers.Add("Content-Type", "application/json");
  request.body = std::move(body);
  auto response = http::Fetch(std::move(request), patience_,
                              {.max_response_bytes = kMaxAnswerBytes, .ca_file = access_.ca_file});
  if (!response.ok()) return base::Annotate(response.status(), "the cluster's API server");
  return response;
}

absl::Status StatusOfAnswer(const http::Response& response, std::string_view what) {
  if (response.status >= 200 && response.status < 300) return absl::OkStatus();
  const std::string said = MessageOfAnswer(response);
  return {CodeOf(response.status), fmt::format("{}: the API server answers {}{}{}", what,
                                               response.status, said.empty() ? "" : ": ", said)};
}

}  // namespace spoke::ipam
