// Microsoft's clouds by name. Pure.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "ipam-server/cloud/azure/settings.h"

namespace spoke::ipam::azure {

// Returns those of "public", "usgovernment" or "china". Errors: kInvalidArgument, with the names.
absl::StatusOr<Endpoints> EndpointsOf(std::string_view cloud);

}  // namespace spoke::ipam::azure
