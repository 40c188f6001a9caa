// The networks that are compared: ours with one family and with two, and chains of the reference
// plugins.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "tests/bench/cni/chain.h"

namespace spoke::cni_bench {

struct Places {
  std::string plugin_dir;  // The directory of `spoke`.
  std::string peers_dir;   // The directory of ptp, host-local and the others.
  std::string socket;      // The socket of the agent.
  std::string leases_dir;  // The directory where host-local keeps its files.
};

// Our networks with IPv4, and with IPv6 as well. The pools that are meant for a pod's namespace
// decide which one it gets.
inline constexpr const char* kSpoke = "spoke";
inline constexpr const char* kSingleNamespace = "bench";
inline constexpr const char* kSpokeDual = "spoke_dual";
inline constexpr const char* kDualNamespace = "dual";
// The network of ptp with host-local: the least the reference plugins can do for a routed pod.
inline constexpr const char* kPtp = "ptp";
// The network that a Kubernetes node gets from them: with host ports, bandwidth and a firewall,
// none of which this pod asks for.
inline constexpr const char* kPtpChain = "ptp_chain";

// Makes the networks, by name. Errors: kInvalidArgument (a plugin is missing, named).
absl::StatusOr<std::map<std::string, Chain>> MakeNetworks(const Places& places);

}  // namespace spoke::cni_bench
