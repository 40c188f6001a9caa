// The policy of this node: what the server has compiled from the objects that operators apply.
// Pure.
//
// Entries are kept as the bytes they came in, so that a kind that only a newer agent knows survives
// in the file that agent will read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace spoke::netagent {

// What is where: CIDR blocks by traffic class.
struct ClusterNetwork {
  std::vector<std::string> cluster;
  std::vector<std::string> hub;
  std::vector<std::string> peer_spoke;
  std::vector<std::string> platform;
  std::vector<std::string> storage;
  // Addresses of Services: of the class cluster.
  std::vector<std::string> services = {};
  // What is connected with a peer spoke when it becomes one stays so.
  bool keep_established = false;

  bool operator==(const ClusterNetwork&) const = default;
};

// Which namespaces belong to a team.
struct Team {
  std::vector<std::string> namespaces;

  bool operator==(const Team&) const = default;
};

// Destinations on the Internet that are counted by a name of their own.
struct DestinationGroup {
  std::vector<std::string> cidrs;
  std::vector<std::string> names = {};  // Of hosts; "*.example.org" is all below that.

  bool operator==(const DestinationGroup&) const = default;
};

enum class EgressMode : uint8_t { kUnspecified, kMasquerade, kRouted, kGateway, kDrop };

// How packets get to a gateway.
enum class GatewayTransport : uint8_t {
  kDirect,  // As next hop: where the network between delivers by next hop.
  kVxlan,   // In a tunnel: where it looks at nothing but the destination.
  kUnknown
};

struct EgressGateway {
  std::vector<std::string> addresses;
  uint16_t health_port = 0;
  std::vector<std::string> draining;
  GatewayTransport transport = GatewayTransport::kDirect;
  uint16_t tunnel_port = 0;

  bool operator==(const EgressGateway&) const = default;
};

// Of each pod; 0: none.
struct EgressLimits {
  uint32_t connections = 0;
  uint32_t new_connections_per_second = 0;
  uint32_t connections_per_destination = 0;
  uint32_t new_connections_per_second_per_destination = 0;

  bool operator==(const EgressLimits&) const = default;
};

// As policy.proto says.
struct EgressPolicy {
  std::vector<std::string> namespaces;
  std::vector<std::string> teams;
  std::vector<std::string> destination_cidrs;
  std::vector<std::string> destination_groups;
  std::vector<std::string> excluded_cidrs;
  bool platform = false;
  EgressMode mode = EgressMode::kUnspecified;
  std::optional<EgressGateway> gateway = std::nullopt;
  EgressMode fallback = EgressMode::kUnspecified;
  EgressLimits limits = {};
  int32_t priority = 0;
  bool cut_established = false;  // With the mode kDrop: ends what is connected already.

  bool operator==(const EgressPolicy&) const = default;
};

// As policy.proto says. Bits of payload a second; 0: none.
struct BandwidthLimit {
  std::vector<std::string> namespaces;
  std::vector<std::string> teams;
  std::string destination_group;  // Empty: the Internet.
  uint64_t pod_ingress = 0;
  uint64_t pod_egress = 0;
  uint64_t node_ingress = 0;
  uint64_t node_egress = 0;
  bool shadow = false;

  bool operator==(const BandwidthLimit&) const = default;
};

// As policy.proto says.
struct BandwidthBudget {
  std::string destination_group;  // Empty: the Internet.
  bool egress = false;
  std::vector<std::string> teams;
  uint64_t floor = 0;  // Bits of payload a second.
  absl::Duration refresh;
  absl::Duration hold;
  absl::Duration half_life;
  bool shadow = false;

  bool operator==(const BandwidthBudget&) const = default;
};

// Of a kind that this agent does not know.
using UnknownKind = std::monostate;

struct PolicyEntry {
  std::string key;    // "ClusterNetwork/main"
  std::string bytes;  // As it came.
  std::variant<UnknownKind, ClusterNetwork, Team, DestinationGroup, EgressPolicy, BandwidthLimit,
               BandwidthBudget>
      value;

  bool operator==(const PolicyEntry&) const = default;
};

// What is in force.
struct Policy {
  uint64_t version = 0;  // 0: there is none.
  std::map<std::string, PolicyEntry> entries;

  bool operator==(const Policy&) const = default;
};

// What the server sends: everything (`full`), or what has changed since `base_version`.
struct PolicyUpdate {
  uint64_t version = 0;
  bool full = false;
  uint64_t base_version = 0;
  std::vector<PolicyEntry> changed;
  std::vector<std::string> removed;  // Keys; one that is not there is no mistake.

  bool operator==(const PolicyUpdate&) const = default;
};

// Beyond these a server has gone wrong, and a node shall not suffer for it.
inline constexpr size_t kMaxPolicyEntries = 10'000;
inline constexpr size_t kMaxPolicyBytes = 8 << 20;  // Of all keys and entries together.

// Whether the agent could act upon `entry`: the key is "Kind/name", of the value's own kind where
// that is known; every CIDR is one, without host bits; every namespace has a name that Kubernetes
// allows (RFC 1123 label); an egress policy has a mode, and gateways and a fallback when that says
// so. Errors: kInvalidArgument, naming the entry and the text.
absl::Status CheckPolicyEntry(const PolicyEntry& entry);

// `current` with `update` applied, whole or not at all. The same update again gives the same.
// Errors: kAborted (relative to a version that is not `current`'s: ask for all of it);
// kInvalidArgument (version 0, a mistake in an entry, or one key twice); kResourceExhausted (too
// many or too large).
absl::StatusOr<Policy> ApplyPolicy(const Policy& current, const PolicyUpdate& update);

}  // namespace spoke::netagent
