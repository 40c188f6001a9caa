#include "ipam-server/cloud/azure/call_answer.h"

#include <string>

#include "ipam-server/cloud/azure/resources/throttle_headers.h"

namespace spoke::ipam::azure {
namespace {

constexpr int kTooManyRequests = 429;

// Returns whether it is "SubscriptionRequestsThrottled": Resource Manager's own refusal.
bool IsFrontDoor(const ArmError& error) {
  return error.code.find("RequestsThrottled") != std::string::npos;
}

}  // namespace

bool IsRefusal(const ArmError& error) {
  return error.kind == ErrorKind::kThrottled ||
         (error.kind == ErrorKind::kAnotherOperation && error.status == kTooManyRequests);
}

CallAnswer CallAnswerOf(const http::Response& response, const std::optional<ArmError>& error) {
  CallAnswer answer;
  for (const RemainingQuota& quota : DecodeThrottleHeaders(response.headers).remaining) {
    const auto remaining = static_cast<double>(quota.remaining);
    if (quota.name == "subscription-reads" || quota.name == "subscription-writes") {
      answer.front_door_remaining = remaining;
    } else if (const size_t slash = quota.name.find('/'); slash != std::string::npos) {
      answer.policies.push_back({quota.name.substr(slash + 1), remaining});
    }
  }
  if (!error.has_value() || !IsRefusal(*error)) return answer;
  answer.retry_after = error->retry_after;
  if (error->kind == ErrorKind::kAnotherOperation) {
    answer.refusal = CallAnswer::Refusal::kResource;
  } else if (IsFrontDoor(*error)) {
    answer.refusal = CallAnswer::Refusal::kFrontDoor;
  } else {
    answer.refusal = CallAnswer::Refusal::kPolicy;
    if (!error->limit.empty()) answer.refused_by.push_back(error->limit);
  }
  return answer;
}

}  // namespace spoke::ipam::azure
