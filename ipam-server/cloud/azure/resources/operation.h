// Azure's long-running operations: where to ask about one, and what the answer says. Pure.
//
// https://learn.microsoft.com/azure/azure-resource-manager/management/async-operations
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ipam-server/cloud/azure/resources/arm_error.h"
#include "lib/http/message.h"

namespace spoke::ipam::azure {

enum class OperationState { kRunning, kSucceeded, kFailed, kCanceled };

struct OperationStatus {
  OperationState state = OperationState::kRunning;
  std::string text;               // Azure's word: "InProgress".
  std::string name;               // The operation's id, where it says it.
  std::optional<ArmError> error;  // Set when failed or canceled; a failure may lack it.
};

// The body of a GET of the Azure-AsyncOperation URL. That answer has HTTP status 200 even when the
// operation failed. Succeeded, Failed and Canceled are final; any other text means it runs.
// Errors: kInvalidArgument (not the documented shape).
absl::StatusOr<OperationStatus> DecodeOperation(std::string_view body);

// How a response says that work goes on.
struct OperationHeaders {
  std::string operation_url;  // Azure-AsyncOperation: ask here first. Empty: none.
  std::string location_url;   // Location: 202 as long as it runs. Empty: none.
  std::optional<absl::Duration> retry_after;
};

// Errors: as FollowUrl() for either URL.
absl::StatusOr<OperationHeaders> DecodeOperationHeaders(const http::Headers& headers,
                                                        std::string_view resource_manager,
                                                        absl::Time now);

// Whether a resource's provisioningState is one of those that do not change by themselves.
bool IsFinalProvisioningState(std::string_view state);

}  // namespace spoke::ipam::azure
