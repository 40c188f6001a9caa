// Addresses that are the platform's or the node's own in every cluster, whatever policy says:
// agents have them in their classes without being told. Pure.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "lib/ip/prefix.h"

namespace spoke::ipam {

// Returns loopback, link-local, multicast and broadcast, of both families (RFC 6890, RFC 4291).
const std::vector<ip::Prefix>& PlatformBlocks();

// Whether `block` may be given another meaning. Errors: kInvalidArgument (it lies in one of these;
// a block that holds one is fine).
absl::Status CheckOutsidePlatform(const ip::Prefix& block);

}  // namespace spoke::ipam
