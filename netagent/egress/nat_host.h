// A NAT host: the node through which the hub reaches Services. Pure.
//
// What comes from the hub for the range of Services gets an endpoint for its destination, from
// kube-proxy or from a table of ours, and this node's address for its source, so that the answer
// comes back the same way. Each flow belongs to one host, and hosts know nothing of each other: any
// number works side by side behind a load balancer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/ip/address.h"
#include "lib/nft/ruleset.h"
#include "netagent/classes/traffic_class.h"

namespace spoke::netagent {

struct NatEndpoint {
  ip::Address address;
  uint16_t port = 0;

  auto operator<=>(const NatEndpoint&) const = default;
};

struct NatService {
  ip::Address address;
  uint16_t port = 0;
  uint8_t protocol = 6;  // The protocol's number: 6 for TCP, 17 for UDP.
  std::vector<NatEndpoint> endpoints;

  bool operator==(const NatService&) const = default;
};

struct EndpointTable {
  absl::Time generated;  // The time when what it says was so.
  std::vector<NatService> services;

  bool operator==(const EndpointTable&) const = default;
};

inline constexpr size_t kMaxNatServices = 20'000;
// The most endpoints of one service; the kernel chooses among them.
inline constexpr size_t kMaxNatEndpoints = 1000;

inline constexpr char kNatHostPrefix[] = "nathost_";
// The counter of flows that were answered with a refusal, since nothing is behind their address.
inline constexpr char kNoEndpointCounter[] = "drop/nat-host-no-endpoint";

// Appends the rules, as objects of the table spoke whose names begin with "nathost_". `endpoints`
// is the table that chooses; without it kube-proxy does. `seen` are the rules that the table has;
// chains that are needed no more go. Established flows go on, whatever becomes of their endpoint
// here. Errors: kInvalidArgument (two services at one address and port, an endpoint of the other
// family, too many; nothing was appended).
absl::Status AppendNatHost(const ClassMap& classes, const std::optional<EndpointTable>& endpoints,
                           const std::vector<nft::RuleReading>& seen,
                           nft::Transaction& transaction);
// Takes all of these objects away.
void AppendNoNatHost(const std::vector<nft::RuleReading>& seen, nft::Transaction& transaction);

}  // namespace spoke::netagent
