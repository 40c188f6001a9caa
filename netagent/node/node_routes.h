// The routing of the node itself, for those who take a shorter way to the same end.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "netagent/fastpath/fast_path_plan.h"

namespace spoke::netagent {

// Not thread-safe.
class NodeRoutes {
 public:
  virtual ~NodeRoutes() = default;

  // Reads the main table and what goes with it; `uplink_index` is 0 when there is no such device.
  // Errors: kUnavailable (the dumps kept being interrupted); kInternal.
  virtual absl::StatusOr<NodeNetwork> Read(const std::string& uplink) = 0;
};

}  // namespace spoke::netagent
