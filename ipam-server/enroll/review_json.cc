#include "ipam-server/enroll/review_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "fmt/core.h"
#include "ipam-server/enroll/node_identity.h"
#include "lib/base/status.h"
#include "lib/json_text/json_text.h"

namespace spoke::ipam {
namespace {

using nlohmann::json;

constexpr size_t kMaxTextBytes = 4096;
constexpr size_t kMaxItems = 64;
constexpr const char* kPodName = "authentication.kubernetes.io/pod-name";
constexpr const char* kPodUid = "authentication.kubernetes.io/pod-uid";

absl::Status Strange(std::string_view where, std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("{}: {}", where, what));
}

absl::StatusOr<json> ParseKind(std::string_view text, std::string_view kind) {
  auto parsed = json_text::ParseJsonObject(text);
  if (!parsed.ok()) return Strange(kind, "the API server's answer is no JSON object");
  if (json_text::StringMember(*parsed, "kind") != kind) {
    return Strange(kind, "the API server's answer is of another kind");
  }
  return parsed;
}

// An object that must be there.
absl::StatusOr<const json*> ObjectIn(const json& object, const char* name) {
  const json* member = json_text::FindMember(object, name);
  if (member == nullptr || !member->is_object()) return Strange(name, "missing, or no object");
  return member;
}

// A text; empty where there is none.
absl::StatusOr<std::string> TextIn(const json& object, const char* name) {
  const json* member = json_text::FindMember(object, name);
  if (member == nullptr) return "";
  if (!member->is_string()) return Strange(name, "no text");
  const auto& text = member->get_ref<const std::string&>();
  if (text.size() > kMaxTextBytes) return Strange(name, "too long");
  return text;
}

absl::StatusOr<std::vector<std::string>> TextsIn(const json& object, const char* name) {
  std::vector<std::string> texts;
  const json* member = json_text::FindMember(object, name);
  if (member == nullptr) return texts;
  if (!member->is_array() || member->size() > kMaxItems) {
    return Strange(name, "no list, or too long");
  }
  for (const json& item : *member) {
    if (!item.is_string()) return Strange(name, "no list of texts");
    texts.push_back(item.get<std::string>());
    if (texts.back().size() > kMaxTextBytes) return Strange(name, "too long");
  }
  return texts;
}

// Returns the only text of a list: "extra" has lists of one text for a token bound to one pod.
absl::StatusOr<std::string> OnlyTextIn(const json& object, const char* name) {
  ASSIGN_OR_RETURN(const std::vector<std::string> texts, TextsIn(object, name));
  if (texts.size() > 1) return Strange(name, "more than one");
  return texts.empty() ? "" : texts.front();
}

absl::Status TakeUser(const json& status, TokenFacts& out) {
  ASSIGN_OR_RETURN(const json* user, ObjectIn(status, "user"));
  ASSIGN_OR_RETURN(out.user, TextIn(*user, "username"));
  ASSIGN_OR_RETURN(out.groups, TextsIn(*user, "groups"));
  if (json_text::FindMember(*user, "extra") == nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(const json* extra, ObjectIn(*user, "extra"));
  ASSIGN_OR_RETURN(out.pod_name, OnlyTextIn(*extra, kPodName));
  ASSIGN_OR_RETURN(out.pod_uid, OnlyTextIn(*extra, kPodUid));
  return absl::OkStatus();
}

// Signs that stand for themselves in a URI (RFC 3986, section 2.3), which is all that keys and
// values of labels are made of, except the '/' in keys.
bool IsPlain(std::string_view text, std::string_view others) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || others.find(c) != others.npos;
  });
}

absl::Status TakeLabels(const json& metadata, NodeFacts& out) {
  const json* labels = json_text::FindMember(metadata, "labels");
  if (labels == nullptr || labels->is_null()) return absl::OkStatus();
  if (!labels->is_object()) return Strange("labels", "no object");
  size_t bytes = 0;
  for (const auto& [key, value] : labels->items()) {
    if (!value.is_string()) return Strange("labels", "a value that is no text");
    const auto& text = value.get_ref<const std::string&>();
    if (key.empty() || !IsPlain(key, "-_./") || !IsPlain(text, "-_.")) {
      return Strange("labels", "a key or value with signs that Kubernetes does not take");
    }
    bytes += key.size() + text.size() + 2;
    if (bytes > kMaxLabelsBytes) return Strange("labels", "more than a certificate can bear");
    out.labels.emplace(key, text);
  }
  return absl::OkStatus();
}

}  // namespace

std::string TokenReviewRequest(std::string_view token, std::string_view audience) {
  return json_text::PrintJson({{"apiVersion", "authentication.k8s.io/v1"},
                               {"kind", "TokenReview"},
                               {"spec", {{"token", token}, {"audiences", {audience}}}}});
}

absl::StatusOr<TokenFacts> ParseTokenReview(std::string_view text) {
  ASSIGN_OR_RETURN(const json review, ParseKind(text, "TokenReview"));
  ASSIGN_OR_RETURN(const json* status, ObjectIn(review, "status"));
  TokenFacts out;
  if (const json* good = json_text::FindMember(*status, "authenticated"); good != nullptr) {
    if (!good->is_boolean()) return Strange("authenticated", "neither true nor false");
    out.authenticated = good->get<bool>();
  }
  ASSIGN_OR_RETURN(const std::string error, TextIn(*status, "error"));
  out.error = json_text::Excerpt(error);
  if (!out.authenticated) return out;
  ASSIGN_OR_RETURN(out.audiences, TextsIn(*status, "audiences"));
  RETURN_IF_ERROR(TakeUser(*status, out));
  return out;
}

absl::StatusOr<PodFacts> ParsePod(std::string_view text) {
  ASSIGN_OR_RETURN(const json pod, ParseKind(text, "Pod"));
  ASSIGN_OR_RETURN(const json* metadata, ObjectIn(pod, "metadata"));
  ASSIGN_OR_RETURN(const json* spec, ObjectIn(pod, "spec"));
  PodFacts out;
  ASSIGN_OR_RETURN(out.name, TextIn(*metadata, "name"));
  ASSIGN_OR_RETURN(out.k8s_namespace, TextIn(*metadata, "namespace"));
  ASSIGN_OR_RETURN(out.uid, TextIn(*metadata, "uid"));
  if (out.name.empty() || out.k8s_namespace.empty() || out.uid.empty()) {
    return Strange("metadata", "a pod without name, namespace or uid");
  }
  ASSIGN_OR_RETURN(out.node_name, TextIn(*spec, "nodeName"));
  ASSIGN_OR_RETURN(out.service_account, TextIn(*spec, "serviceAccountName"));
  return out;
}

absl::StatusOr<NodeFacts> ParseNode(std::string_view text) {
  ASSIGN_OR_RETURN(const json node, ParseKind(text, "Node"));
  ASSIGN_OR_RETURN(const json* metadata, ObjectIn(node, "metadata"));
  ASSIGN_OR_RETURN(const json* spec, ObjectIn(node, "spec"));
  NodeFacts out;
  ASSIGN_OR_RETURN(out.name, TextIn(*metadata, "name"));
  if (out.name.empty()) return Strange("metadata", "a node without name");
  ASSIGN_OR_RETURN(out.provider_id, TextIn(*spec, "providerID"));
  const bool has_scheme = out.provider_id.find("://") != std::string::npos;
  const bool ours =
      absl::StartsWithIgnoreCase(out.provider_id, {kNodeScheme.data(), kNodeScheme.size()});
  if (!out.provider_id.empty() &&
      (!has_scheme || ours || !IsPlain(out.provider_id, "-._~:/()%@+"))) {
    return Strange("providerID", "no URI");
  }
  RETURN_IF_ERROR(TakeLabels(*metadata, out));
  return out;
}

}  // namespace spoke::ipam
