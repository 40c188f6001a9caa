// Egress gateways as this node sees them: asks for their health, and keeps the kernel's ways to
// them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/os/clock.h"
#include "lib/telemetry/log.h"
#include "netagent/egress/gateways/gateway_endpoint.h"
#include "netagent/egress/gateways/gateway_health.h"
#include "netagent/egress/gateways/gateway_routes.h"
#include "netagent/egress/gateways/tcp_probe.h"

namespace spoke::netagent {

// Not thread-safe; the agent's one loop owns it.
class Gateways {
 public:
  struct Edges {
    GatewayRoutes& routes;
    TcpProbe& probe;
    const os::Clock& clock;
    telemetry::Log& log;
  };
  // Borrows the edges.
  explicit Gateways(const Edges& edges) : edges_(edges) {}

  // The marks and the port that the last agent left, as EgressSettings has them.
  struct Found {
    std::map<uint32_t, GatewayEndpoint> known_marks;
    std::optional<uint16_t> known_tunnel_port;
  };
  // Returns what the last agent left. Errors: those of GatewayRoutes.
  absl::StatusOr<Found> Start();

  // Puts ways up for EgressRules::GatewayMarks(), before the rules that mark packets are in force,
  // with the tunnel for EgressRules::TunnelPort(); takes those away that are in them no more. Where
  // there can be no tunnel, that is logged and tried again at each look: meanwhile the gateways
  // behind it do not answer, and the rules let nothing past it. Errors: those of GatewayRoutes;
  // call it again then.
  absl::Status Prepare(const std::map<uint32_t, GatewayEndpoint>& marks,
                       std::optional<uint16_t> tunnel_port);
  // Asks these for their health, after Prepare(), as EgressRules::Gateways() has them. One that is
  // reached as next hop is asked at its port by ordinary routing; one behind the tunnel by the
  // tunnel, at the address behind its translation (claims::kProbeV4), so that its answer tells of
  // both.
  void SetTargets(const std::map<GatewayEndpoint, uint16_t>& targets);

  // Asks and listens, every kPeriod, and looks whether the ways are as they should be. Returns
  // whether healthy() has changed.
  bool Tick();
  absl::Time NextWake() const;
  std::set<GatewayEndpoint> healthy() const { return health_.Healthy(); }

  static constexpr absl::Duration kPeriod = absl::Seconds(2);
  static constexpr absl::Duration kListen = absl::Milliseconds(100);
  static constexpr absl::Duration kLook = absl::Seconds(10);

 private:
  bool PutTunnel();
  void RepairWays();
  void Ask(absl::Time now);

  const Edges edges_;
  GatewayHealth health_;
  std::map<GatewayEndpoint, uint16_t> targets_;
  std::map<uint32_t, GatewayEndpoint> ways_;  // The ways as they should be.
  std::optional<uint16_t> tunnel_port_;       // The port as it should be.
  // The reason why the tunnel failed, so that it is said once; empty: it is there.
  std::string tunnel_failed_;
  std::map<TcpProbeTarget, GatewayEndpoint> waiting_;  // The checks under way.
  absl::Time next_check_ = absl::InfinitePast();
  absl::Time next_listen_ = absl::InfiniteFuture();
  absl::Time next_look_ = absl::InfinitePast();
};

}  // namespace spoke::netagent
