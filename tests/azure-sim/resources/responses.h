// Answers in the shapes that ARM and the providers behind it give. Pure.
#pragma once

#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "lib/http/message.h"
#include "tests/azure-sim/knobs.h"
#include "tests/azure-sim/resources/operations.h"
#include "tests/azure-sim/throttle.h"
#include "tests/azure-sim/world.h"

namespace spoke::azure_sim {

// The list "details", which is empty in some errors and absent from others.
enum class Details : uint8_t { kNone, kEmpty };

// Answers {"error": {"code", "message", "target"?, "details"?}} as JSON with the headers of all
// answers.
http::Response ErrorResponse(int status, std::string_view code, std::string_view message,
                             Details details = Details::kNone, std::string_view target = {});

http::Response JsonResponse(int status, const Json& body);
// Answers without a body.
http::Response EmptyResponse(int status);

// Answers what ARM does before any provider is asked: "X-Ms-Failure-Cause: gateway".
http::Response ResourceNotFound(std::string_view type_and_name, std::string_view group);
http::Response GroupNotFound(std::string_view group);
http::Response SubscriptionNotFound(std::string_view subscription);
http::Response MissingApiVersion();
// Answers what a provider does for what is nested in a resource.
http::Response NestedNotFound(std::string_view id);
// Answers what it does for what is nested in a resource that is not there itself.
http::Response ParentNotFound(std::string_view parent);

// -- What cannot be asked at all.
// Answers for a path that is none of the provider's, or that its API has in other versions only.
http::Response UnknownResourceType(std::string_view type, Api api, std::string_view api_version,
                                   const Knobs& knobs);
// Answers for a resource whose API does not have this version; `location` is the resource's.
http::Response UnsupportedVersion(const ApiOperation& operation, std::string_view location,
                                  std::string_view api_version, const Knobs& knobs);
// Answers for what is no version at all, or asked of Resource Manager itself.
http::Response InvalidVersion(std::string_view api_version, const Knobs& knobs);
http::Response MethodNotAllowed(std::string_view method, const PathOperations& path);
// Answers for what Azure has, and the simulator has not. `what` follows the operation's name: why
// not.
http::Response NotSimulated(const ApiOperation& operation, std::string_view what = {});

http::Response ComputePreconditionFailed(std::string_view given, std::string_view actual);
http::Response NetworkPreconditionFailed(std::string_view given, std::string_view actual,
                                         std::string_view id);
// Answers "If-None-Match: *" for what is there.
http::Response AlreadyThere(std::string_view id);

enum class ThrottledBy : uint8_t { kCompute, kNetwork, kFrontDoor };
http::Response Throttled(const Grant& grant, ThrottledBy by, std::string_view subscription,
                         const Knobs& knobs, absl::Time now);

// Adds the header in the form that knobs.retry_after has.
void AddRetryAfter(absl::Duration delay, RetryAfter form, absl::Time now, http::Response* response);

// Returns "2026-01-02T03:04:05.6789+00:00", as Compute's operations have it.
std::string TimeText(absl::Time time);
// Returns RFC 1123: "Mon, 11 Apr 2026 22:26:58 GMT".
std::string FormatHttpDate(absl::Time time);

// Compute's etags count: "\"7\""; Network's are GUIDs: "W/\"...\"".
std::string ComputeEtag(uint64_t version);
std::string NetworkEtag(uint64_t serial, uint64_t version);

}  // namespace spoke::azure_sim
