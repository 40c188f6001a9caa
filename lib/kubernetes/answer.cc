#include "lib/kubernetes/answer.h"

#include <string>

#include "fmt/core.h"
#include "lib/json_text/json_text.h"

namespace spoke::kubernetes {
namespace {

// What a Status object (meta/v1) says; empty when it is none.
std::string MessageOfAnswer(const http::Response& response) {
  const auto json = json_text::ParseJsonObject(response.body);
  return json.ok() ? json_text::Excerpt(json_text::StringMember(*json, "message")) : "";
}

absl::StatusCode CodeOf(int status) {
  if (status == 404) return absl::StatusCode::kNotFound;
  if (status == 409) return absl::StatusCode::kAborted;
  if (status == 410) return absl::StatusCode::kOutOfRange;
  if (status == 400 || status == 401 || status == 403 || status == 422) {
    return absl::StatusCode::kFailedPrecondition;
  }
  if (status == 429 || (status >= 500 && status < 600)) return absl::StatusCode::kUnavailable;
  return absl::StatusCode::kInternal;
}

}  // namespace

absl::Status StatusOfAnswer(const http::Response& response, std::string_view what) {
  if (response.status >= 200 && response.status < 300) return absl::OkStatus();
  const std::string said = MessageOfAnswer(response);
  return {CodeOf(response.status), fmt::format("{}: the API server answers {}{}{}", what,
                                               response.status, said.empty() ? "" : ": ", said)};
}

absl::Status StatusOfCode(int code, std::string_view message) {
  return {CodeOf(code), fmt::format("the API server says {}: {}", code, message)};
}

}  // namespace spoke::kubernetes
