// Which of Azure's published limits a call meets, and how much each allows. Pure.
//
// Resource Manager's front door counts by principal, subscription and type of operation; Compute by
// policy, for a resource and for a subscription in a region; Network for a subscription in a
// region.
// https://learn.microsoft.com/azure/azure-resource-manager/management/request-limits-and-throttling
// https://learn.microsoft.com/azure/virtual-machines/compute-throttling-limits
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ipam-server/cloud/calls/throttle.h"

namespace spoke::ipam {

// What we ever ask of Azure.
enum class CallKind : uint8_t {
  kGetScaleSet,
  kGetInstance,  // The model of a Uniform scale set's instance.
  kPutInstance,
  kPollCompute,       // An operation's status.
  kListInstanceNics,  // A page of the NICs of a Uniform scale set.
  kGetInstanceNic,
  kGetVm,  // A Flexible scale set's VM.
  kListVms,
  kGetNic,
  kPutNic,
  kPollNetwork,
  kListNics,
};
std::string_view NameOf(CallKind kind);

enum class Limit : uint8_t {
  kFrontDoorReads,
  kFrontDoorWrites,
  kUpdateInstances,
  kGetInstances,
  kGetScaleSets,
  kUpdateVms,
  kGetVms,
  kListVms,
  kComputeOperations,
  kNetworkReads,
  kNetworkWrites,
};
inline constexpr Limit kLastLimit = Limit::kNetworkWrites;

enum class LimitScope : uint8_t {
  kPrincipal,  // Each principal and subscription: the front door.
  kRegion,     // Each region and subscription.
  kResource,
};

struct ScopedLimit {
  Limit limit;
  LimitScope scope;

  auto operator<=>(const ScopedLimit&) const = default;
};

// Returns all limits that calls of this kind meet.
const std::vector<ScopedLimit>& LimitsOf(CallKind kind);
LimitRate RateOf(const ScopedLimit& limit);
// Returns Azure's name: "UpdateVMScaleSetVMs".
std::string_view NameOf(Limit limit);

// What a policy named in a header or an error is to us: "UpdateVMScaleSetVMsResource",
// "GetOperationSubscriptionMaximum". nullopt for names we know nothing of, such as those of the
// model before 2024 ("GetVMScaleSetVM3Min"), whose budgets are others.
std::optional<ScopedLimit> LimitNamed(std::string_view policy);

// What is left of a policy, as a header says.
struct PolicyBudget {
  std::string policy;  // "GetOperationResource".
  double remaining = 0;

  bool operator==(const PolicyBudget&) const = default;
};

}  // namespace spoke::ipam
