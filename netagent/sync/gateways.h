// Egress gateways as this node sees them: asks for their health, and keeps the kernel's ways to
// them.
#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/ip/address.h"
#include "lib/os/clock.h"
#include "lib/telemetry/log.h"
#include "netagent/core/gateway_health.h"
#include "netagent/kernel/gateway_routes.h"
#include "netagent/kernel/tcp_probe.h"

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

  // The ways that the last agent left: EgressSettings::known_marks. Errors: as GatewayRoutes.
  absl::StatusOr<std::map<uint32_t, ip::Address>> Start();

  // Puts ways up for EgressRules::GatewayMarks(), before the rules that mark packets are in force;
  // takes those away that are in them no more. Errors: as GatewayRoutes; call it again then.
  absl::Status Prepare(const std::map<uint32_t, ip::Address>& marks);
  // Asks these for their health: EgressRules::Gateways().
  void SetTargets(const std::map<ip::Address, uint16_t>& targets);

  // Asks and listens, every kPeriod, and looks whether the ways are as they should be. True when
  // healthy() has changed.
  bool Tick();
  absl::Time NextWake() const;
  std::set<ip::Address> healthy() const { return health_.Healthy(); }

  static constexpr absl::Duration kPeriod = absl::Seconds(2);
  static constexpr absl::Duration kListen = absl::Milliseconds(100);
  static constexpr absl::Duration kLook = absl::Seconds(10);

 private:
  void RepairWays();

  const Edges edges_;
  GatewayHealth health_;
  std::map<ip::Address, uint16_t> targets_;
  std::map<uint32_t, ip::Address> ways_;  // As they should be.
  size_t waiting_ = 0;                    // Checks under way.
  absl::Time next_check_ = absl::InfinitePast();
  absl::Time next_listen_ = absl::InfiniteFuture();
  absl::Time next_look_ = absl::InfinitePast();
};

}  // namespace spoke::netagent
