#include "ipam-server/cloud/azure/resources/operation.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "ipam-server/cloud/azure/resources/arm_id.h"
#include "lib/base/status.h"
#include "lib/json_text/json_text.h"

namespace spoke::ipam::azure {
namespace {

using nlohmann::json;

bool Is(std::string_view text, std::string_view wanted) {
  return absl::EqualsIgnoreCase({text.data(), text.size()}, {wanted.data(), wanted.size()});
}

OperationState StateOf(std::string_view text) {
  if (Is(text, "Succeeded")) return OperationState::kSucceeded;
  if (Is(text, "Failed")) return OperationState::kFailed;
  if (Is(text, "Canceled")) return OperationState::kCanceled;
  return OperationState::kRunning;
}

absl::StatusOr<std::string> UrlIn(const http::Headers& headers, std::string_view name,
                                  std::string_view resource_manager) {
  const auto value = headers.Find(name);
  if (!value || value->empty()) return std::string();
  return FollowUrl(resource_manager, *value);
}

}  // namespace

absl::StatusOr<OperationStatus> DecodeOperation(std::string_view body) {
  ASSIGN_OR_RETURN(const json decoded, json_text::ParseJsonObject(body));
  OperationStatus operation;
  operation.text = json_text::StringMember(decoded, "status");
  if (operation.text.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("an operation does not say its status: \"{}\"", json_text::Excerpt(body)));
  }
  operation.state = StateOf(operation.text);
  operation.name = json_text::StringMember(decoded, "name");
  const bool failed =
      operation.state == OperationState::kFailed || operation.state == OperationState::kCanceled;
  if (const json* error = json_text::FindMember(decoded, "error"); failed && error != nullptr) {
    operation.error = DecodeOperationError(*error);
  }
  return operation;
}

absl::StatusOr<OperationHeaders> DecodeOperationHeaders(const http::Headers& headers,
                                                        std::string_view resource_manager,
                                                        absl::Time now) {
  OperationHeaders decoded;
  ASSIGN_OR_RETURN(decoded.operation_url, UrlIn(headers, "Azure-AsyncOperation", resource_manager));
  ASSIGN_OR_RETURN(decoded.location_url, UrlIn(headers, "Location", resource_manager));
  decoded.retry_after = http::RetryAfter(headers, now);
  return decoded;
}

bool IsFinalProvisioningState(std::string_view state) {
  return StateOf(state) != OperationState::kRunning;
}

}  // namespace spoke::ipam::azure
