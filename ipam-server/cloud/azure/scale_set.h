// A scale set, and a VM of a Flexible one, as the Compute API describes them: the little of it that
// we need. Pure.
//
// https://learn.microsoft.com/rest/api/compute/virtual-machine-scale-sets/get
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ipam-server/cloud/azure/resources/arm_id.h"

namespace spoke::ipam::azure {

struct ScaleSet {
  std::string region;  // Lower-case: "eastus2".
  bool flexible = false;
  std::optional<int> capacity;  // How many instances it is to have.
};

// Errors: kInvalidArgument (not the documented shape).
absl::StatusOr<ScaleSet> DecodeScaleSet(std::string_view body);

struct FlexibleVm {
  ResourceId id;
  std::optional<ResourceId> scale_set;
  std::vector<ResourceId> nics;
};

// Errors: kInvalidArgument (not the documented shape).
absl::StatusOr<FlexibleVm> DecodeFlexibleVm(const nlohmann::json& body);

}  // namespace spoke::ipam::azure
