#include "lib/kubernetes/api.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/http/curl_transport.h"
#include "lib/os/file.h"

namespace spoke::kubernetes {
namespace {

constexpr size_t kMaxTokenBytes = 64U << 10U;

}  // namespace

absl::StatusOr<ClusterAccess> InClusterAccess(
    const std::function<const char*(const char* name)>& environment, const std::string& directory) {
  const char* host = environment("KUBERNETES_SERVICE_HOST");
  const char* port = environment("KUBERNETES_SERVICE_PORT");
  if (host == nullptr || *host == '\0' || port == nullptr || *port == '\0') {
    return absl::FailedPreconditionError(
        "KUBERNETES_SERVICE_HOST and _PORT are not set: run as a pod of the cluster");
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
          fmt::format("{}; it takes the pod's service account: do not set "
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

absl::Status Authorize(const ClusterAccess& access, http::Request& request) {
  const auto token = os::ReadFile(access.token_file, kMaxTokenBytes);
  if (!token.ok()) {
    return absl::FailedPreconditionError(
        fmt::format("our own service account's token: {}", base::MessageOf(token.status())));
  }
  request.headers.Add("Authorization",
                      absl::StrCat("Bearer ", absl::StripTrailingAsciiWhitespace(*token)));
  return absl::OkStatus();
}

absl::StatusOr<http::Response> Api::Call(const std::string& method, const std::string& path,
                                         std::string body) const {
  http::Request request{.method = method, .url = access_.url + path, .headers = {}, .body = ""};
  RETURN_IF_ERROR(Authorize(access_, request));
  request.headers.Add("Accept", "application/json");
  if (!body.empty()) request.headers.Add("Content-Type", "application/json");
  request.body = std::move(body);
  auto response = http::Fetch(std::move(request), patience_,
                              {.max_response_bytes = kMaxAnswerBytes, .ca_file = access_.ca_file});
  if (!response.ok()) return base::Annotate(response.status(), "the cluster's API server");
  return response;
}

}  // namespace spoke::kubernetes
