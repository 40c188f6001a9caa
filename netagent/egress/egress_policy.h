// Egress policies of a bundle, resolved: in the order in which they are asked, with their
// destinations, and by namespace. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/ip/address.h"
#include "lib/ip/prefix.h"
#include "netagent/classes/egress_cells.h"
#include "netagent/egress/gateways/gateway_endpoint.h"
#include "netagent/egress/ip_masq.h"
#include "netagent/policy/policy_bundle.h"

namespace spoke::netagent {

struct ResolvedGateway {
  GatewayEndpoint endpoint;
  uint16_t health_port = kGatewayHealthPort;
  bool draining = false;  // Whether it gets no new flows.

  bool operator==(const ResolvedGateway&) const = default;
};

struct ResolvedEgress {
  std::string name;
  Destinations destinations;
  bool platform = false;  // Whether the platform's services are among them.
  policy::EgressMode mode = policy::EgressMode::kRouted;
  std::vector<ResolvedGateway> gateways;
  policy::EgressMode fallback = policy::EgressMode::kDrop;
  policy::EgressLimits limits;
  bool cuts = false;  // Whether flows that began before it end; with the mode kDrop only.

  bool operator==(const ResolvedEgress&) const = default;
};

// The policies, by index and in order, that select a pod.
using Profile = std::vector<uint32_t>;

struct ResolvedPolicies {
  std::vector<ResolvedEgress> policies;  // The policies, in the order in which they are asked.
  std::vector<Profile> profiles;         // The first is that of all namespaces that are not listed.
  std::map<std::string, uint32_t> profile_of;  // By namespace: an index into `profiles`.
  // The UDP port by which gateways are reached; nothing: no policy has a tunnel.
  std::optional<uint16_t> tunnel_port = std::nullopt;

  uint32_t ProfileOf(const std::string& pod_namespace) const;
  // Returns what the first policy that selects the profile's pods and names the platform says:
  // whether they reach it. It is nothing where none does.
  std::optional<bool> OpensPlatform(uint32_t profile) const;
  bool NamesPlatform() const;
};

// The name of the policy that is asked last and does what ip-masq-agent does.
inline constexpr std::string_view kIpMasqPolicy = "ip-masq-agent";

// The most policies that a node puts into its kernel.
inline constexpr size_t kMaxEgressPolicies = 1000;
inline constexpr size_t kMaxEgressProfiles = 1000;

// Resolves the policies. Errors: kInvalidArgument, naming the policy (a team or group that is not
// in the bundle, a gateway that is no address, two health ports for one gateway, two ports for
// tunnels, too many).
absl::StatusOr<ResolvedPolicies> ResolveEgress(const Policy& policy,
                                               const std::optional<IpMasqConfig>& ip_masq);

}  // namespace spoke::netagent
