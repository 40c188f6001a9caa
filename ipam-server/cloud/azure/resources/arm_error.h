// What Azure says when it refuses: the error and what it asks of us. Pure.
//
// https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/common-deployment-errors
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "lib/http/message.h"

namespace spoke::ipam::azure {

// What to do about it.
enum class ErrorKind {
  kThrottled,         // Close the gate of the limit until Retry-After.
  kAnotherOperation,  // Azure is busy with this or a related resource: again soon.
  kPreempted,         // A newer request took this one's place: read again, plan again.
  kConflict,          // Two wrote at once: again in some seconds, after reading again.
  kPrecondition,      // The ETag is stale: read again at once.
  kUnauthenticated,   // The token: get a new one, once.
  kForbidden,         // A right is missing: leave the scope alone for long, tell an operator.
  kLocked,            // A management lock: likewise.
  kSubnetFull,        // Leave the subnet alone for minutes.
  kLimit,             // It is more than Azure allows: ask for less.
  kGoingAway,         // The VM is being deleted: forget it once lists agree.
  kInstanceGone,      // There is no such VM or NIC.
  kResourceGone,      // Something else that the call needs is not there.
  kGroupGone,         // The resource group or the subscription is not there.
  kRefused,     // Azure refuses until something else has changed: seldom, and tell an operator.
  kBadRequest,  // Our request is wrong: not again as it is.
  kTransient,   // Azure has a problem of its own: again, with backoff.
  kUnknown,
};

struct ArmError {
  ErrorKind kind = ErrorKind::kUnknown;
  int status = 0;  // The HTTP status; 0 for an operation that failed later.
  std::string code;
  std::string message;
  std::string target;
  // Codes of nested errors, outermost first; they are often the ones that tell.
  std::vector<std::string> details;
  std::string detail_message;  // The message of the first nested error that has one.
  std::string request_id;      // The id for Microsoft's support.
  // The limit's name when throttled ("HighCostGet30Min"), where Azure says it.
  std::string limit;
  std::optional<absl::Duration> retry_after;
};

// Decodes a response that is not a success. Whatever the body is (empty, HTML of a gateway, JSON
// without an error), there is an answer: then the status alone decides.
ArmError DecodeArmError(const http::Response& response, absl::Time now);

// Decodes the error of an operation that failed after it was accepted: {"code":...,"message":...},
// with or without an "error" around it.
ArmError DecodeOperationError(const nlohmann::json& error);

std::string_view ToString(ErrorKind kind);

// What a published code means to us, for docs/AZURE_ERRORS.md.
struct CodeRule {
  std::string_view code;
  bool whole;  // False: a part of the code is enough.
  ErrorKind kind;
};
// The first that matches one of an error's codes counts.
std::span<const CodeRule> CodeRules();

// Returns text for operators: "SubnetIsFull: Subnet Subnet1 ... (HTTP 400, request 1234)". It is
// one line, bounded; what is forbidden is said in full, since it names the right that is missing.
std::string Describe(const ArmError& error);

}  // namespace spoke::ipam::azure
