// Which addresses agents reach this server at: no policy may have nodes drop them.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ipam-server/policy/objects/selector.h"
#include "lib/ip/address.h"

namespace spoke::ipam {

// The address that `listen` (host:port) names, or all `own` ones when it is that of every
// interface; and those `advertised`, such as a load balancer's. Loopback and link-local ones are
// left out: no policy has a say about them. Pure.
std::vector<ProtectedAddress> ProtectedAddressesOf(std::string_view listen,
                                                   std::span<const ip::Address> own,
                                                   std::span<const ip::Address> advertised);

// Returns the addresses of this machine's interfaces. Errors: as getifaddrs(3).
absl::StatusOr<std::vector<ip::Address>> OwnAddresses();

}  // namespace spoke::ipam
