// Egress gateways behind a tunnel, in namespaces: a node with its agent's part that puts rules and
// asks for gateways' health, and two gateways.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/ip/address.h"
#include "lib/netns/netns.h"
#include "lib/nft/connection.h"
#include "lib/os/clock.h"
#include "lib/os/unique_fd.h"
#include "netagent/egress/egress_rules.h"
#include "netagent/egress/gateways/gateways.h"
#include "netagent/egress/gateways/netlink_gateway_routes.h"
#include "netagent/egress/gateways/tcp_probe.h"
#include "tests/netns/egress/egress_world.h"
#include "tests/support/recording_log.h"

namespace spoke::netagent {

// Returns a policy by which all that leaves goes by the two gateways of each family, and is dropped
// where none works.
Policy ByGateways(policy::GatewayTransport transport, uint16_t port = kTunnelPort);

// Runs `act` in the namespace.
template <typename F>
void In(const netns::Netns& netns, F act) {
  const absl::Status status = netns.Run([&] {
    act();
    return absl::OkStatus();
  });
  ASSERT_TRUE(status.ok()) << status;
}

// Runs a command of nft(8)'s in the namespace, and expects it to be done.
void Nft(const netns::Netns& netns, const std::string& command);

// The world. Not thread-safe. As long as it lives the calling thread is in the node's namespace.
class EgressTunnelWorld {
 public:
  // Returns null where namespaces cannot be made. Borrows the clock.
  static std::unique_ptr<EgressTunnelWorld> Make(const os::Clock& clock);

  // Puts the rules of a policy, and the ways to its gateways, as an agent does when the policy, or
  // what works, has changed.
  void Set(const Policy& policy);
  // Puts a policy whose gateways are behind the tunnel.
  void SetTunnel();
  // Puts the rules of the policy again, for the gateways that work now.
  void SetAgain() { Set(policy_); }
  void PutGatewayRules(size_t i);
  // Lets the gateway's agent listen no more at its health port.
  void Drain(size_t i) { nodes_.at(i).health = os::UniqueFd(); }

  const EgressWorld& net() const { return *world_; }
  EgressWorld& net() { return *world_; }
  Gateways& gateways() { return *gateways_; }
  const EgressSettings& settings() const { return settings_; }
  const testing_support::RecordingLog& log() const { return log_; }
  // Takes connections off the gateways' health ports, whose queues are full after 64.
  void TakeConnections();
  // Returns those of a family that work.
  std::set<std::string> Healthy(ip::Family family) const;

 private:
  // A gateway's agent, as far as packets meet it.
  struct GatewayNode {
    std::unique_ptr<NetlinkGatewayRoutes> routes;
    os::UniqueFd health;
  };
  EgressTunnelWorld(std::unique_ptr<EgressWorld> world, const os::Clock& clock);
  void Apply(nft::Connection& tables, const EgressRules& rules, bool pods);

  std::unique_ptr<EgressWorld> world_;
  std::unique_ptr<NetlinkGatewayRoutes> routes_;
  SocketTcpProbe probe_;
  testing_support::RecordingLog log_;
  std::optional<Gateways> gateways_;
  std::vector<GatewayNode> nodes_;
  EgressSettings settings_;
  Policy policy_;
  const TrafficPod pod_ = {
      .host_link = EgressWorld::kPodLink,
      .addresses = {AddressesOf(ip::Family::kV4).pod, AddressesOf(ip::Family::kV6).pod},
      .pod_namespace = "team-a"};
};

}  // namespace spoke::netagent
