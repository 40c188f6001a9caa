// A node's own metadata service and wireserver, inside its network namespace.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/azure-sim/http_server.h"
#include "tests/azure-sim/sim_service.h"

namespace spoke::azure_sim {

inline constexpr const char* kImdsAddress = "169.254.169.254";
inline constexpr const char* kWireserverAddress = "168.63.129.16";

// Both listen on port 80. Their addresses are put on the namespace's lo when they are not there;
// they stay. Borrows `service`. Errors: kNotFound (no namespace, no instance); kPermissionDenied;
// kUnavailable (a port is taken).
absl::StatusOr<std::vector<std::unique_ptr<HttpServer>>> ListenOnNode(
    SimService& service, const std::string& netns_path, const std::string& instance_id);

}  // namespace spoke::azure_sim
