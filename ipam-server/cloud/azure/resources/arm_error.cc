#include "ipam-server/cloud/azure/resources/arm_error.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "lib/json_text/json_text.h"

namespace spoke::ipam::azure {
namespace {

using nlohmann::json;

// Errors come inside errors, and inside the text of errors.
constexpr int kMaxNesting = 4;
constexpr size_t kMaxDetails = 16;
// The most bytes of what Azure says, for people.
constexpr size_t kMostOfText = 200;
constexpr size_t kMostOfForbidden = 4096;

bool Holds(std::string_view text, std::string_view part) {
  const auto same = [](char a, char b) {
    return absl::ascii_tolower(static_cast<unsigned char>(a)) ==
           absl::ascii_tolower(static_cast<unsigned char>(b));
  };
  return std::search(text.begin(), text.end(), part.begin(), part.end(), same) != text.end();
}

// What kind of error a code is, whatever the HTTP status. The first row that matches one of the
// error's codes counts, so the rows that say more come first.
constexpr auto kCodes = std::to_array<CodeRule>({
    {"SubnetIsFull", true, ErrorKind::kSubnetFull},
    {"RetryableErrorDueToAnotherOperation", true, ErrorKind::kAnotherOperation},
    {"ReferencedResourceNotProvisioned", true, ErrorKind::kAnotherOperation},
    {"AnotherOperationInProgress", true, ErrorKind::kAnotherOperation},
    {"Conflict", true, ErrorKind::kConflict},
    {"Superseded", false, ErrorKind::kPreempted},
    {"OperationPreempted", false, ErrorKind::kPreempted},
    {"TooManyRequests", true, ErrorKind::kThrottled},
    {"RequestsThrottled", false, ErrorKind::kThrottled},
    {"PreconditionFailed", false, ErrorKind::kPrecondition},
    {"InvalidAuthenticationToken", false, ErrorKind::kUnauthenticated},
    {"ExpiredAuthenticationToken", true, ErrorKind::kUnauthenticated},
    {"AuthenticationFailed", false, ErrorKind::kUnauthenticated},
    {"AuthorizationFailed", false, ErrorKind::kForbidden},  // LinkedAuthorizationFailed as well.
    {"RequestDisallowedByPolicy", true, ErrorKind::kForbidden},
    {"ReadOnlyDisabledSubscription", true, ErrorKind::kForbidden},
    {"DenyAssignment", false, ErrorKind::kForbidden},
    {"ScopeLocked", true, ErrorKind::kLocked},
    {"ResourceGroupNotFound", true, ErrorKind::kGroupGone},
    {"SubscriptionNotFound", true, ErrorKind::kGroupGone},
    {"InvalidResourceReference", true, ErrorKind::kResourceGone},
    {"ParentResourceNotFound", true, ErrorKind::kResourceGone},
    {"PropertyChangeNotAllowed", true, ErrorKind::kRefused},
    {"MissingSubscriptionRegistration", true, ErrorKind::kRefused},
    {"MissingRegistrationForLocation", true, ErrorKind::kRefused},
    {"InvalidSubscriptionRegistrationState", true, ErrorKind::kRefused},
    {"SubscriptionNotRegistered", true, ErrorKind::kRefused},
    {"NoRegisteredProviderFound", true, ErrorKind::kRefused},
    {"RegionDoesNotAllowProvisioning", true, ErrorKind::kRefused},
    {"ResourceGroupBeingDeleted", true, ErrorKind::kRefused},
    {"Allocation", false, ErrorKind::kRefused},  // Overconstrained..., Zonal..., ...Failed.
    {"SkuNotAvailable", true, ErrorKind::kRefused},
    {"InstanceProtected", false, ErrorKind::kRefused},
    {"VMExtension", false, ErrorKind::kRefused},
    {"VMAgent", false, ErrorKind::kRefused},
    {"OSProvisioning", false, ErrorKind::kRefused},
    {"ImageNotFound", true, ErrorKind::kRefused},
    {"OutboundRule", false, ErrorKind::kRefused},
    {"PrivateIPAddressIsAllocated", true, ErrorKind::kBadRequest},
    {"PrivateIPAddressInReservedRange", true, ErrorKind::kBadRequest},
    {"PrivateIPAddressNotInSubnet", true, ErrorKind::kBadRequest},
    {"IpConfigDeleteNotSupported", true, ErrorKind::kBadRequest},
    {"InvalidIPConfigCount", true, ErrorKind::kBadRequest},
    {"InvalidParameter", true, ErrorKind::kBadRequest},
    {"InvalidRequestContent", true, ErrorKind::kBadRequest},
    {"InvalidRequestFormat", true, ErrorKind::kBadRequest},
    {"LinkedInvalidPropertyId", true, ErrorKind::kBadRequest},
    {"SubnetsNotInSameVnet", true, ErrorKind::kBadRequest},
    {"Exceeded", false, ErrorKind::kLimit},
    {"LimitReached", false, ErrorKind::kLimit},
    {"OutOfIpAddresses", false, ErrorKind::kLimit},
    {"RetryableError", true, ErrorKind::kAnotherOperation},
    {"InternalServerError", true, ErrorKind::kTransient},
    {"InternalExecutionError", true, ErrorKind::kTransient},
    {"InternalOperationError", false, ErrorKind::kTransient},
    {"ServerTimeout", true, ErrorKind::kTransient},
    {"GatewayTimeout", true, ErrorKind::kTransient},
    {"ServiceUnavailable", true, ErrorKind::kTransient},
});

// What only the text tells: the codes are shared with other errors.
struct TextRow {
  std::string_view part;
  ErrorKind kind;
};
constexpr auto kTexts = std::to_array<TextRow>({
    {"marked for deletion", ErrorKind::kGoingAway},
    {"not an active Virtual AzureState Scale Set VM instanceId", ErrorKind::kInstanceGone},
    {"preempted by a more recent operation", ErrorKind::kPreempted},
    {"does not have enough capacity for", ErrorKind::kSubnetFull},
    {"conflict with a concurrent request", ErrorKind::kConflict},
});

bool Matches(std::string_view code, const CodeRule& row) {
  return row.whole ? absl::EqualsIgnoreCase({code.data(), code.size()},
                                            {row.code.data(), row.code.size()})
                   : Holds(code, row.code);
}

std::optional<ErrorKind> KindOfCodes(const ArmError& error) {
  for (const CodeRule& row : kCodes) {
    if (Matches(error.code, row) ||
        std::any_of(error.details.begin(), error.details.end(),
                    [&row](const std::string& code) { return Matches(code, row); })) {
      return row.kind;
    }
  }
  return std::nullopt;
}

std::optional<ErrorKind> KindOfText(const ArmError& error) {
  for (const TextRow& row : kTexts) {
    if (Holds(error.message, row.part) || Holds(error.detail_message, row.part)) return row.kind;
  }
  return std::nullopt;
}

// 404 comes for the VM, its NIC, and for all that they are in; the text names what is missing.
ErrorKind KindOfMissing(const ArmError& error) {
  const bool instance =
      Holds(error.message, "/virtualMachines/") || Holds(error.message, "/networkInterfaces/");
  return instance ? ErrorKind::kInstanceGone : ErrorKind::kResourceGone;
}

ErrorKind KindOfStatus(const ArmError& error) {
  switch (error.status) {
    case 401:
      return ErrorKind::kUnauthenticated;
    case 403:
      return ErrorKind::kForbidden;
    case 404:
    case 410:
      return KindOfMissing(error);
    case 408:
    case 500:
    case 502:
    case 503:
    case 504:
      return ErrorKind::kTransient;
    case 409:
      return ErrorKind::kRefused;  // Races say so; what else conflicts stays, however often tried.
    case 412:
      return ErrorKind::kPrecondition;
    case 429:
      return ErrorKind::kThrottled;
    default:
      return error.status >= 400 && error.status < 500 ? ErrorKind::kBadRequest
                                                       : ErrorKind::kUnknown;
  }
}

ErrorKind Classify(const ArmError& error) {
  if (const auto kind = KindOfText(error)) return *kind;
  const auto kind = KindOfCodes(error);
  // A limit that 429 speaks of is one of calls, not of things.
  if (kind == ErrorKind::kLimit && error.status == 429) return ErrorKind::kThrottled;
  return kind.value_or(KindOfStatus(error));
}

// Parses "try again after '6' seconds", "can be retried in 11 seconds".
std::optional<absl::Duration> WaitInText(std::string_view text) {
  for (const std::string_view before : {"try again after '", "retried in "}) {
    const size_t found = text.find(before);
    if (found == std::string_view::npos) continue;
    const std::string_view rest = text.substr(found + before.size());
    const size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    int64_t seconds = 0;
    if (!absl::SimpleAtoi(absl::string_view(rest.data(), digits), &seconds)) continue;
    return std::min(absl::Seconds(seconds), http::kMaxRetryAfter);
  }
  return std::nullopt;
}

// `first`: the outermost; what is nested adds its codes only.
void Collect(const json& error, int nesting, bool first, ArmError& into);

// The text of an error may be JSON again: a nested error, or what a limit counted.
// NOLINTNEXTLINE(misc-no-recursion): bounded by kMaxNesting.
void CollectText(const std::string& text, int nesting, ArmError& into) {
  const absl::string_view trimmed = absl::StripLeadingAsciiWhitespace(text);
  if (!absl::StartsWith(trimmed, "{")) return;
  const auto inner = json_text::ParseJsonObject(text);
  if (!inner.ok()) return;
  if (const json* nested = json_text::FindMember(*inner, "error"); nested != nullptr) {
    Collect(*nested, nesting + 1, false, into);
  } else if (const std::string group = json_text::StringMember(*inner, "operationGroup");
             !group.empty()) {
    into.limit = group;
  } else {
    Collect(*inner, nesting + 1, false, into);
  }
}

// NOLINTNEXTLINE(misc-no-recursion): bounded by kMaxNesting.
void Collect(const json& error, int nesting, bool first, ArmError& into) {
  if (nesting > kMaxNesting || into.details.size() >= kMaxDetails) return;
  const std::string code = json_text::StringMember(error, "code");
  const std::string message = json_text::StringMember(error, "message");
  const std::string target = json_text::StringMember(error, "target");
  if (first) {
    into.code = code;
    into.message = message;
    into.target = target;
  } else {
    if (!code.empty()) into.details.push_back(code);
    if (into.detail_message.empty()) into.detail_message = message;
    if (into.target.empty()) into.target = target;
    if (into.limit.empty() && code == "TooManyRequests") into.limit = target;
  }
  CollectText(message, nesting, into);
  if (const json* details = json_text::FindMember(error, "details");
      details && details->is_array()) {
    for (const json& detail : *details) Collect(detail, nesting + 1, false, into);
  }
  if (const json* inner = json_text::FindMember(error, "innererror"))
    Collect(*inner, nesting + 1, false, into);
}

// The object with `code` and `message`: ARM puts it into "error", parts of Compute do not.
void CollectBody(const json& body, ArmError& into) {
  const json* error = json_text::FindMember(body, "error");
  if (error != nullptr && error->is_string()) {
    into.code = json_text::StringMember(body, "error");
    into.message = json_text::StringMember(body, "error_description");
    return;
  }
  Collect(error != nullptr ? *error : body, 0, true, into);
}

void Finish(ArmError& into) {
  if (!into.retry_after) into.retry_after = WaitInText(into.message);
  if (!into.retry_after) into.retry_after = WaitInText(into.detail_message);
  into.kind = Classify(into);
}

}  // namespace

ArmError DecodeArmError(const http::Response& response, absl::Time now) {
  ArmError error{.status = response.status};
  error.request_id = std::string(response.headers.Find("x-ms-request-id").value_or(""));
  error.retry_after = http::RetryAfter(response.headers, now);
  // Gateways answer with pages of their own under any content type, so the body alone tells.
  const auto body = json_text::ParseJsonObject(response.body);
  if (body.ok()) CollectBody(*body, error);
  if (error.code.empty() && error.message.empty())
    error.message = json_text::Excerpt(response.body);
  Finish(error);
  return error;
}

ArmError DecodeOperationError(const json& error) {
  ArmError decoded;
  CollectBody(error, decoded);
  Finish(decoded);
  return decoded;
}

std::span<const CodeRule> CodeRules() { return kCodes; }

std::string_view ToString(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kThrottled:
      return "throttled";
    case ErrorKind::kAnotherOperation:
      return "another-operation";
    case ErrorKind::kPreempted:
      return "preempted";
    case ErrorKind::kConflict:
      return "conflict";
    case ErrorKind::kPrecondition:
      return "precondition";
    case ErrorKind::kUnauthenticated:
      return "unauthenticated";
    case ErrorKind::kForbidden:
      return "forbidden";
    case ErrorKind::kLocked:
      return "locked";
    case ErrorKind::kSubnetFull:
      return "subnet-full";
    case ErrorKind::kLimit:
      return "limit";
    case ErrorKind::kGoingAway:
      return "going-away";
    case ErrorKind::kInstanceGone:
      return "instance-gone";
    case ErrorKind::kResourceGone:
      return "resource-gone";
    case ErrorKind::kGroupGone:
      return "group-gone";
    case ErrorKind::kRefused:
      return "refused";
    case ErrorKind::kBadRequest:
      return "bad-request";
    case ErrorKind::kTransient:
      return "transient";
    case ErrorKind::kUnknown:
      break;
  }
  return "unknown";
}

std::string Describe(const ArmError& error) {
  const size_t most = error.kind == ErrorKind::kForbidden ? kMostOfForbidden : kMostOfText;
  std::string text = error.code.empty() ? std::string("an error") : json_text::Excerpt(error.code);
  if (!error.details.empty())
    text += fmt::format(" ({})", json_text::Excerpt(error.details.back()));
  if (!error.message.empty()) text += fmt::format(": {}", json_text::Excerpt(error.message, most));
  if (!error.detail_message.empty()) {
    text += fmt::format(" {}", json_text::Excerpt(error.detail_message, most));
  }
  if (!error.target.empty()) text += fmt::format(" [{}]", json_text::Excerpt(error.target));
  std::string origin;
  if (error.status != 0) origin = fmt::format("HTTP {}", error.status);
  if (!error.request_id.empty()) {
    origin += fmt::format("{}request {}", origin.empty() ? "" : ", ",
                          json_text::Excerpt(error.request_id));
  }
  return origin.empty() ? text : fmt::format("{} ({})", text, origin);
}

}  // namespace spoke::ipam::azure
