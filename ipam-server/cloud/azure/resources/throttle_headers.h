// What is left of Azure's limits, as its responses say. Pure.
//
// https://learn.microsoft.com/azure/azure-resource-manager/management/request-limits-and-throttling
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/http/message.h"

namespace spoke::ipam::azure {

struct RemainingQuota {
  // The name "Microsoft.Compute/GetVMScaleSetVM3Min" of x-ms-ratelimit-remaining-resource; of the
  // front door's headers what follows x-ms-ratelimit-remaining-, in lower case:
  // "subscription-writes", "subscription-global-reads", "tenant-reads".
  std::string name;
  int64_t remaining = 0;

  bool operator==(const RemainingQuota&) const = default;
};

struct ThrottleState {
  std::vector<RemainingQuota> remaining;  // The headers' order; kMaxQuotas at most.
  std::optional<int64_t> charge;          // Units that the call cost: x-ms-request-charge.

  bool operator==(const ThrottleState&) const = default;
};

inline constexpr size_t kMaxQuotas = 64;

// Several policies come in one header, with commas between, or in repeated ones. What cannot be
// read is passed over: these are hints.
ThrottleState DecodeThrottleHeaders(const http::Headers& headers);

}  // namespace spoke::ipam::azure
