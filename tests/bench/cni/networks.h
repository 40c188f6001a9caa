// The networks that are compared: ours with one family and with two, and chains of the reference
// plugins.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "tests/bench/cni/chain.h"

namespace spoke::cni_bench {

struct Places {
  std::string plugin_dir;  // Of `spoke`.
  std::string peers_dir;   // Of ptp, host-local and the others.
  std::string socket;      // Of the agent.
  std::string leases_dir;  // Where host-local keeps its files.
};

// Ours with IPv4, and with IPv6 as well. Which one a pod gets is decided by the pools that are
// meant for its namespace.
inline constexpr const char* kSpoke = "spoke";
inline constexpr const char* kSingleNamespace = "bench";
inline constexpr const char* kSpokeDual = "spoke_dual";
inline constexpr const char* kDualNamespace = "dual";
// ptp with host-local: the least the reference plugins can do for a routed pod.
inline constexpr const char* kPtp = "ptp";
// What a Kubernetes node gets from them: with host ports, bandwidth and a firewall, none of which
// this pod asks for.
inline constexpr const char* kPtpChain = "ptp_chain";

// By name. Errors: kInvalidArgument (a plugin is missing, named).
absl::StatusOr<std::map<std::string, Chain>> MakeNetworks(const Places& places);

}  // namespace spoke::cni_bench
