// Tells by which device a node reaches others. Pure, thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"

namespace spoke::node_checks {

// A default route of the main table.
struct DefaultRoute {
  int32_t link = 0;     // The index of its device; 0: it has several next hops.
  uint32_t metric = 0;  // The lower metric wins.
};

// Returns the index of the device of the route with the lowest metric, of the default routes of one
// address family. Errors: kNotFound (there are none), kFailedPrecondition (those with that metric
// have different devices, or one of them has several next hops).
absl::StatusOr<int32_t> ChooseUplink(std::span<const DefaultRoute> routes);

}  // namespace spoke::node_checks
