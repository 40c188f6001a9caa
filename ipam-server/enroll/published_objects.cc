#include "ipam-server/enroll/published_objects.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/json_text/json_text.h"
#include "lib/kubernetes/answer.h"
#include "lib/telemetry/scrape_request.h"

namespace spoke::ipam {
namespace {

using nlohmann::json;

struct ClusterObject {
  std::string path;  // The path of its kind: "/api/v1/namespaces/NS/configmaps".
  std::string name;
  json wanted;  // It has "data".
};

std::string Base64(std::string_view text) {
  return absl::Base64Escape(absl::string_view(text.data(), text.size()));
}

json NewObject(const char* kind, const char* name) {
  return {{"apiVersion", "v1"},
          {"kind", kind},
          {"metadata",
           {{"name", name}, {"labels", {{"app.kubernetes.io/managed-by", "spoke-ipam-server"}}}}}};
}

// Returns true if it was written.
absl::StatusOr<bool> Put(const kubernetes::Api& api, const ClusterObject& object) {
  const std::string path = object.path + "/" + object.name;
  ASSIGN_OR_RETURN(const http::Response found, api.Call("GET", path));
  if (found.status == 404) {
    ASSIGN_OR_RETURN(const http::Response made,
                     api.Call("POST", object.path, json_text::PrintJson(object.wanted)));
    RETURN_IF_ERROR(kubernetes::StatusOfAnswer(made, "create " + object.name));
    return true;
  }
  RETURN_IF_ERROR(kubernetes::StatusOfAnswer(found, "read " + object.name));
  auto present = json_text::ParseJsonObject(found.body);
  // The error leaves out the text, which may hold a key.
  if (!present.ok()) return absl::InternalError("read " + object.name + ": no JSON object");
  const json* data = json_text::FindMember(*present, "data");
  if (data != nullptr && *data == object.wanted["data"]) return false;
  // The object keeps its resourceVersion, so that nobody's change in between is lost.
  (*present)["data"] = object.wanted["data"];
  ASSIGN_OR_RETURN(const http::Response put, api.Call("PUT", path, json_text::PrintJson(*present)));
  RETURN_IF_ERROR(kubernetes::StatusOfAnswer(put, "replace " + object.name));
  return true;
}

}  // namespace

absl::StatusOr<bool> Publish(const kubernetes::Api& api, const std::string& k8s_namespace,
                             const PublishedFiles& files) {
  const std::string base = fmt::format("/api/v1/namespaces/{}", k8s_namespace);
  ClusterObject authority{.path = base + "/configmaps",
                          .name = kAuthorityConfigMap,
                          .wanted = NewObject("ConfigMap", kAuthorityConfigMap)};
  authority.wanted["data"] = {{"ca.pem", files.authority}};
  ClusterObject operators{.path = base + "/secrets",
                          .name = kOperatorSecret,
                          .wanted = NewObject("Secret", kOperatorSecret)};
  operators.wanted["type"] = "kubernetes.io/tls";
  operators.wanted["data"] = {{"ca.crt", Base64(files.authority)},
                              {"tls.crt", Base64(files.operator_certificate)},
                              {"tls.key", Base64(files.operator_key)}};
  ClusterObject metrics{.path = base + "/secrets",
                        .name = kMetricsSecret,
                        .wanted = NewObject("Secret", kMetricsSecret)};
  metrics.wanted["data"] = {{"token", Base64(files.metrics_token)}};
  bool written = false;
  absl::Status failed;
  // Agents' pods wait for the authority alone, so that they find the token beside it.
  std::vector<const ClusterObject*> objects = {&metrics, &authority};
  if (!files.operator_certificate.empty()) objects.push_back(&operators);
  for (const ClusterObject* object : objects) {
    const auto put = Put(api, *object);
    // The others would only take as long again when nobody answers.
    if (absl::IsUnavailable(put.status()) || absl::IsDeadlineExceeded(put.status())) {
      return put.status();
    }
    failed.Update(put.status());
    written = written || put.value_or(false);
  }
  RETURN_IF_ERROR(failed);
  return written;
}

absl::StatusOr<std::string> PublishedMetricsToken(const kubernetes::Api& api,
                                                  const std::string& k8s_namespace) {
  ASSIGN_OR_RETURN(const http::Response found,
                   api.Call("GET", fmt::format("/api/v1/namespaces/{}/secrets/{}", k8s_namespace,
                                               kMetricsSecret)));
  if (found.status == 404) return "";
  RETURN_IF_ERROR(kubernetes::StatusOfAnswer(found, fmt::format("read {}", kMetricsSecret)));
  const auto secret = json_text::ParseJsonObject(found.body);
  // The error leaves out the text, which holds a token.
  if (!secret.ok())
    return absl::InternalError(fmt::format("read {}: no JSON object", kMetricsSecret));
  const json* data = json_text::FindMember(*secret, "data");
  std::string token;
  if (data == nullptr || !absl::Base64Unescape(json_text::StringMember(*data, "token"), &token))
    return "";
  absl::StripAsciiWhitespace(&token);
  const bool is_one_line = std::all_of(
      token.begin(), token.end(), [](unsigned char byte) { return absl::ascii_isgraph(byte); });
  return is_one_line && token.size() >= telemetry::kMinTokenBytes ? token : "";
}

absl::StatusOr<bool> HasOperatorSecret(const kubernetes::Api& api,
                                       const std::string& k8s_namespace) {
  ASSIGN_OR_RETURN(const http::Response found,
                   api.Call("GET", fmt::format("/api/v1/namespaces/{}/secrets/{}", k8s_namespace,
                                               kOperatorSecret)));
  if (found.status == 404) return false;
  RETURN_IF_ERROR(kubernetes::StatusOfAnswer(found, fmt::format("read {}", kOperatorSecret)));
  return true;
}

}  // namespace spoke::ipam
