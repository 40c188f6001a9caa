#include "tests/azure-sim/resources/responses.h"

#include <utility>

#include "fmt/core.h"

namespace spoke::azure_sim {
namespace {

constexpr const char* kJson = "application/json; charset=utf-8";
constexpr std::string_view kOperationsPage = "docs/AZURE_SIMULATOR.md";

std::string Quoted(std::string_view text) {
  // What a client sends as "\"7\"" is shown with its own quotes, not with two pairs.
  if (text.size() >= 2 && text.front() == '"') return std::string(text);
  return fmt::format("\"{}\"", text);
}

http::Response GatewayError(int status, std::string_view code, std::string_view message) {
  http::Response response = ErrorResponse(status, code, message);
  response.headers.Add("X-Ms-Failure-Cause", "gateway");
  return response;
}

Json ThrottleDetails(const Grant& grant) {
  const Json message = {
      {"operationGroup", grant.limit},
      {"startTime", TimeText(grant.interval_start)},
      {"endTime", TimeText(grant.interval_end)},
      {"allowedRequestCount", static_cast<int64_t>(grant.limit_most)},
      {"measuredRequestCount", static_cast<int64_t>(grant.measured)},
  };
  return Json::array(
      {{{"code", "TooManyRequests"}, {"target", grant.limit}, {"message", message.dump()}}});
}

}  // namespace

http::Response EmptyResponse(int status) {
  http::Response response;
  response.status = status;
  response.headers = {{"Cache-Control", "no-cache"},
                      {"Pragma", "no-cache"},
                      {"Expires", "-1"},
                      {"Strict-Transport-Security", "max-age=31536000; includeSubDomains"},
                      {"X-Content-Type-Options", "nosniff"},
                      {"X-Cache", "CONFIG_NOCACHE"}};
  return response;
}

http::Response JsonResponse(int status, const Json& body) {
  http::Response response = EmptyResponse(status);
  response.headers.Add("Content-Type", kJson);
  // Invalid UTF-8 can only come from a request; it must not end the simulator.
  response.body = body.dump(-1, ' ', false, Json::error_handler_t::replace);
  return response;
}

http::Response ErrorResponse(int status, std::string_view code, std::string_view message,
                             Details details, std::string_view target) {
  Json error = {{"code", code}, {"message", message}};
  if (details == Details::kEmpty) error["details"] = Json::array();
  if (!target.empty()) error["target"] = target;
  return JsonResponse(status, {{"error", std::move(error)}});
}

http::Response ResourceNotFound(std::string_view type_and_name, std::string_view group) {
  return GatewayError(
      404, "ResourceNotFound",
      fmt::format("The Resource '{}' under resource group '{}' was not found. For more details "
                  "please go to https://aka.ms/ARMResourceNotFoundFix",
                  type_and_name, group));
}

http::Response GroupNotFound(std::string_view group) {
  return GatewayError(404, "ResourceGroupNotFound",
                      fmt::format("Resource group '{}' could not be found.", group));
}

http::Response SubscriptionNotFound(std::string_view subscription) {
  return GatewayError(404, "SubscriptionNotFound",
                      fmt::format("The subscription '{}' could not be found.", subscription));
}

http::Response MissingApiVersion() {
  return GatewayError(
      400, "MissingApiVersionParameter",
      "The api-version query parameter (?api-version=) is required for all requests.");
}

http::Response NestedNotFound(std::string_view id) {
  return ErrorResponse(404, "NotFound", fmt::format("Resource {} not found.", id), Details::kEmpty);
}

http::Response ParentNotFound(std::string_view parent) {
  return GatewayError(404, "ParentResourceNotFound",
                      fmt::format("Can not perform requested operation on nested resource. Parent "
                                  "resource '{}' not found.",
                                  parent));
}

http::Response UnknownResourceType(std::string_view type, Api api, std::string_view api_version,
                                   const Knobs& knobs) {
  return GatewayError(
      404, "InvalidResourceType",
      fmt::format("The resource type '{}' could not be found in the namespace '{}' for api version "
                  "'{}'. The supported api-versions are '{}'. The simulator has what {} lists.",
                  type, NamespaceOf(api), api_version, VersionsText(api, knobs), kOperationsPage));
}

http::Response UnsupportedVersion(const ApiOperation& operation, std::string_view location,
                                  std::string_view api_version, const Knobs& knobs) {
  return GatewayError(
      400, "NoRegisteredProviderFound",
      fmt::format("No registered resource provider found for location '{}' and API version '{}' "
                  "for type '{}'. The supported api-versions are '{}'. The supported locations are "
                  "'{}'.",
                  location, api_version, TypeOf(operation), VersionsText(operation.api, knobs),
                  location));
}

http::Response InvalidVersion(std::string_view api_version, const Knobs& knobs) {
  return GatewayError(400, "InvalidApiVersionParameter",
                      fmt::format("The api-version '{}' is invalid. The supported versions are "
                                  "'{}'.",
                                  api_version, VersionsText(Api::kResourceManager, knobs)));
}

http::Response MethodNotAllowed(std::string_view method, const PathOperations& path) {
  // The code is unverified; the sentence is what ASP.NET says.
  http::Response response = ErrorResponse(
      405, "MethodNotAllowed",
      fmt::format("The requested resource does not support http method '{}'.", method));
  response.headers.Add("Allow", path.Methods());
  return response;
}

http::Response NotSimulated(const ApiOperation& operation, std::string_view what) {
  return ErrorResponse(
      501, "NotSimulated",
      fmt::format("{} ({} {}) is an operation of Azure that this simulator does not have{}{}. {} "
                  "lists those it has.",
                  operation.name, operation.method, operation.path, what.empty() ? "" : ": ", what,
                  kOperationsPage));
}

http::Response ComputePreconditionFailed(std::string_view given, std::string_view actual) {
  return ErrorResponse(
      412, "PreconditionFailed",
      fmt::format("Etag provided in if-match header {} does not match etag {} of resource.",
                  Quoted(given), actual));
}

http::Response NetworkPreconditionFailed(std::string_view given, std::string_view actual,
                                         std::string_view id) {
  const std::string shown =
      given.substr(0, 2) == "W/" ? std::string(given) : fmt::format("W/{}", Quoted(given));
  Json error = {{"code", "PreconditionFailed"}, {"message", "Precondition failed."}};
  error["details"] = Json::array(
      {{{"code", "PreconditionFailedEtagMismatch"},
        {"message", fmt::format("Etag provided in if-match header {} does not match etag {} of "
                                "resource {} in NRP data store.",
                                shown, actual, id)}}});
  return JsonResponse(412, {{"error", std::move(error)}});
}

http::Response AlreadyThere(std::string_view id) {
  return ErrorResponse(  // The words are unverified.
      412, "PreconditionFailed",
      fmt::format("The header if-none-match is *, and the resource {} is there already.", id));
}

http::Response Throttled(const Grant& grant, ThrottledBy by, std::string_view subscription,
                         const Knobs& knobs, absl::Time now) {
  Json error;
  switch (by) {
    case ThrottledBy::kCompute:
      error = {{"code", "OperationNotAllowed"},
               {"message",
                "The server rejected the request because too many requests have been received for "
                "this subscription."},
               {"details", ThrottleDetails(grant)}};
      break;
    case ThrottledBy::kNetwork:  // The words are unverified.
      error = {{"code", "TooManyRequests"},
               {"message",
                "The request is being throttled as the limit has been reached for "
                "operation group " +
                    grant.limit + "."},
               {"details", ThrottleDetails(grant)}};
      break;
    case ThrottledBy::kFrontDoor:
      error = {{"code", "SubscriptionRequestsThrottled"},
               {"message",
                fmt::format("Number of requests for subscription '{}' and operation '{}' exceeded "
                            "the backend storage limit. Please try again after '{}' seconds.",
                            subscription, grant.limit, absl::ToInt64Seconds(grant.retry_after))}};
      break;
  }
  const bool bare = knobs.throttle_without_error && by == ThrottledBy::kCompute;
  http::Response response = JsonResponse(429, bare ? error : Json{{"error", error}});
  AddRetryAfter(grant.retry_after, knobs.retry_after, now, &response);
  return response;
}

void AddRetryAfter(absl::Duration delay, RetryAfter form, absl::Time now,
                   http::Response* response) {
  switch (form) {
    case RetryAfter::kSeconds:
      response->headers.Add("Retry-After", fmt::format("{}", absl::ToInt64Seconds(delay)));
      return;
    // The text has whole seconds, rounded up, so that it is never too early.
    case RetryAfter::kHttpDate:
      response->headers.Add("Retry-After", FormatHttpDate(absl::FromUnixSeconds(absl::ToUnixSeconds(
                                               now + delay + absl::Milliseconds(999)))));
      return;
    case RetryAfter::kAbsent:
      return;
  }
}

std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E6S%Ez", time, absl::UTCTimeZone());
}

std::string FormatHttpDate(absl::Time time) {
  return absl::FormatTime("%a, %d %b %Y %H:%M:%S GMT", time, absl::UTCTimeZone());
}

std::string ComputeEtag(uint64_t version) { return fmt::format("\"{}\"", version); }

std::string NetworkEtag(uint64_t serial, uint64_t version) {
  return fmt::format("W/\"{}\"", GuidOf(serial, version));
}

}  // namespace spoke::azure_sim
