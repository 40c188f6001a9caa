// Finds the device by which a node reaches others: that of the default route.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "lib/netlink/network_layer.h"

namespace spoke::node_checks {

// Returns the index of the device of the default route with the lowest metric, of the routes of one
// address family. Only the main table counts. Pure, thread-safe. Errors: kNotFound (no such route),
// kFailedPrecondition (routes with that metric have different devices, or one route has several).
absl::StatusOr<int32_t> UplinkOf(std::span<const netlink::Route> routes);

// Returns the name of that device in the calling thread's network namespace: by IPv4's routes, and
// by IPv6's where IPv4 has no default route. Blocks for a millisecond. Errors: those of
// UplinkOf(), and of netlink::Dump().
absl::StatusOr<std::string> ReadUplink();

}  // namespace spoke::node_checks
