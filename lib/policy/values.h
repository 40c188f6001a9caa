// The kinds of policy as nodes get them: typed values, which the server makes of the objects that
// operators apply and agents act upon. Pure. What the fields mean is in policy.proto;
// wire.h has the one codec.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "lib/ip/address.h"
#include "lib/ip/endpoint.h"
#include "lib/ip/prefix.h"
#include "lib/units/quantity.h"

namespace spoke::policy {

// The rule for connections that are there when a policy comes that does not admit them.
enum class Established : uint8_t { kUnspecified, kCut, kKeep };

// The most targets of one kind that an object may have nodes try: all nodes try all of them.
inline constexpr size_t kMaxProbes = 8;

// The CIDR blocks of each traffic class.
struct ClusterNetwork {
  std::vector<ip::Prefix> cluster;
  std::vector<ip::Prefix> hub;
  std::vector<ip::Prefix> peer_spoke;
  std::vector<ip::Prefix> platform;
  std::vector<ip::Prefix> storage;
  // The addresses of Services, which are of the class cluster.
  std::vector<ip::Prefix> services = {};
  // The rule for connections with peer spokes; kUnspecified: kCut.
  Established established = Established::kUnspecified;
  // What each node tries to connect to, at most kMaxProbes of each: of the hub, which is to be
  // reached, and of peer spokes, which are not.
  std::vector<ip::Endpoint> hub_probes = {};
  std::vector<ip::Endpoint> peer_spoke_probes = {};

  bool operator==(const ClusterNetwork&) const = default;
};

// The namespaces that belong to a team.
struct Team {
  std::vector<std::string> namespaces;

  bool operator==(const Team&) const = default;
};

// Destinations on the Internet that are counted by a name of their own.
struct DestinationGroup {
  std::vector<ip::Prefix> cidrs;
  std::vector<std::string> names = {};  // The names of hosts; "*.example.org" is all below that.

  bool operator==(const DestinationGroup&) const = default;
};

enum class EgressMode : uint8_t { kUnspecified, kMasquerade, kRouted, kGateway, kDrop };

// The way in which packets get to a gateway.
enum class GatewayTransport : uint8_t {
  kDirect,  // The gateway is the next hop: where the network between delivers by next hop.
  kVxlan    // Packets go in a tunnel: where the network looks at nothing but the destination.
};

struct EgressGateway {
  std::vector<ip::Address> addresses;
  uint16_t health_port = 0;  // The port; 0: the agent's default.
  std::vector<ip::Address> draining;
  GatewayTransport transport = GatewayTransport::kDirect;
  uint16_t tunnel_port = 0;  // The port; 0: the agent's default.

  bool operator==(const EgressGateway&) const = default;
};

// The limits of each pod; 0: none.
struct EgressLimits {
  uint32_t connections = 0;
  uint32_t new_connections_per_second = 0;
  uint32_t connections_per_destination = 0;
  uint32_t new_connections_per_second_per_destination = 0;

  bool operator==(const EgressLimits&) const = default;
};

// The addresses that `platform` of an egress policy names: Azure's metadata service and its wire
// server, which is DNS as well. They answer to the node's primary address only
// (github.com/Azure/azure-container-networking issues 988 and 807).
inline constexpr ip::Address kMetadataService = ip::Address::V4(0xA9FEA9FE);  // 169.254.169.254
inline constexpr ip::Address kWireserver = ip::Address::V4(0xA83F8110);       // 168.63.129.16
inline constexpr std::array kPlatformServices = {kMetadataService, kWireserver};

struct EgressPolicy {
  std::vector<std::string> namespaces;
  std::vector<std::string> teams;
  std::vector<ip::Prefix> destination_cidrs;
  std::vector<std::string> destination_groups;
  std::vector<ip::Prefix> excluded_cidrs;
  bool platform = false;
  EgressMode mode = EgressMode::kUnspecified;
  std::optional<EgressGateway> gateway = std::nullopt;
  EgressMode fallback = EgressMode::kUnspecified;
  EgressLimits limits = {};
  int32_t priority = 0;
  // The rule, with the mode kDrop, for connections that it would not let begin; kUnspecified:
  // kKeep.
  Established established = Established::kUnspecified;

  bool operator==(const EgressPolicy&) const = default;
};

// Rates are of payload; 0: none.
struct BandwidthLimit {
  std::vector<std::string> namespaces;
  std::vector<std::string> teams;
  std::string destination_group;  // The group; empty: the Internet.
  units::BitRate pod_ingress;
  units::BitRate pod_egress;
  units::BitRate node_ingress;
  units::BitRate node_egress;
  bool shadow = false;

  bool operator==(const BandwidthLimit&) const = default;
};

struct BandwidthBudget {
  std::string destination_group;  // The group; empty: the Internet.
  bool egress = false;
  std::vector<std::string> teams;
  units::BitRate floor;  // The floor, a rate of payload.
  absl::Duration refresh;
  absl::Duration hold;
  absl::Duration half_life;
  bool shadow = false;

  bool operator==(const BandwidthBudget&) const = default;
};

// The value of a kind that only a newer program knows.
using UnknownKind = std::monostate;

using Value = std::variant<UnknownKind, ClusterNetwork, Team, DestinationGroup, EgressPolicy,
                           BandwidthLimit, BandwidthBudget>;

// One object of a node's policy.
struct Entry {
  std::string key;    // The key, such as "ClusterNetwork/main".
  std::string bytes;  // The v1::PolicyEntry, as it came: what is not known here survives in it.
  Value value;

  bool operator==(const Entry&) const = default;
};

// The message of the server: everything (`full`), or what has changed since `base_version`.
struct Update {
  uint64_t version = 0;
  bool full = false;
  uint64_t base_version = 0;
  std::vector<Entry> changed;
  // The keys of removed entries; one that is not there is no mistake.
  std::vector<std::string> removed;
  // The first entry that could not be read, which `changed` does not have: the update must be
  // refused with it, once it is known to be one for this node.
  absl::Status mistake;

  bool operator==(const Update&) const = default;
};

}  // namespace spoke::policy
