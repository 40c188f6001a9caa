// The file that says which endpoints Services have, for a NAT host that chooses among them itself.
// Pure.
//
//   {"generated": "2026-01-31T12:00:00Z",
//    "services": [{"address": "10.96.0.10", "port": 80, "protocol": "TCP",
//                  "endpoints": [{"address": "10.1.0.5", "port": 8080}]}]}
#pragma once

#include <cstddef>
#include <string_view>

#include "absl/status/statusor.h"
#include "netagent/egress/nat_host.h"

namespace spoke::netagent {

inline constexpr size_t kMaxEndpointBytes = 32UL << 20;

// Reads the file. Keys that it does not know are left alone, since whoever writes the file may know
// more. Errors: kInvalidArgument, naming the service and what is wrong with it.
absl::StatusOr<EndpointTable> ParseEndpoints(std::string_view text);

}  // namespace spoke::netagent
