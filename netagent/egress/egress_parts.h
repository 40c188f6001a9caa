// The node's own part of egress, tied together: gateways, ip-masq-agent's files, and the roles that
// the configuration gives the node.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "lib/nft/tables.h"
#include "lib/os/clock.h"
#include "lib/os/event_loop.h"
#include "lib/telemetry/log.h"
#include "netagent/egress/egress_rules.h"
#include "netagent/egress/gateway_role.h"
#include "netagent/egress/gateways/gateway_routes.h"
#include "netagent/egress/gateways/gateways.h"
#include "netagent/egress/gateways/health_port.h"
#include "netagent/egress/gateways/tcp_probe.h"
#include "netagent/egress/ip_masq_files.h"
#include "netagent/egress/nat_host_role.h"

namespace spoke::netagent {

// Not thread-safe; the agent's one loop owns it.
class EgressParts {
 public:
  struct Settings {
    bool platform = false;
    std::string ip_masq_path;  // The path of ip-masq-agent's files; empty: there is none.
    bool ip_masq_ipv6 = false;
    std::optional<GatewayRoleSettings> gateway = std::nullopt;
    std::vector<ip::Address> gateway_addresses = {};
    std::optional<NatHostSettings> nat_host = std::nullopt;
    uint16_t nat_host_port = 9468;
  };
  struct Edges {
    nft::Tables& tables;
    GatewayRoutes& routes;
    TcpProbe& probe;
    os::EventLoop& loop;
    const os::Clock& clock;
    telemetry::Log& log;
  };
  // The functions by which changes get into the rules: those of Traffic with these names.
  struct Callbacks {
    std::function<absl::Status(std::set<GatewayEndpoint>)> on_gateways;
    std::function<absl::Status(std::optional<IpMasqConfig>)> on_ip_masq;
  };
  // Borrows the edges.
  EgressParts(Settings settings, const Edges& edges, Callbacks callbacks);

  // Returns what the rules begin with; reads the files and the ways that the last agent left. Must
  // be called once, before anything else. Errors: those of GatewayRoutes::Read().
  absl::StatusOr<EgressSettings> Start();
  // Does what Gateways::Prepare() does.
  absl::Status PrepareWays(const EgressRules& rules) {
    return gateways_.Prepare(rules.GatewayMarks(), rules.TunnelPort());
  }
  // Takes over, after each change of policy, that `rules` are in force.
  void OnRules(const EgressRules& rules, const ClassMap& classes);

  void Tick();
  absl::Time NextWake() const;

 private:
  absl::Status EndFormerNatHost();
  void TickNatHost(absl::Time now);

  const Settings settings_;
  const Edges edges_;
  const Callbacks callbacks_;
  Gateways gateways_;
  std::set<GatewayEndpoint> told_;  // The healthy gateways that were told last.
  bool tell_ = false;
  std::optional<IpMasqFilesWatch> ip_masq_;
  std::optional<GatewayRole> gateway_;
  std::optional<NatHostRole> nat_host_;
  std::optional<HealthPort> nat_host_port_;
  bool port_failed_ = false;
  bool in_force_ = false;
};

}  // namespace spoke::netagent
