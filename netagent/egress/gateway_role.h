// The role egress-gateway: its health port answers while the node translates what others send
// through it, and is closed while it drains. The rules are EgressSettings::is_gateway.
#pragma once

#include <functional>
#include <string>

#include "absl/time/time.h"
#include "lib/telemetry/log.h"
#include "netagent/egress/gateways/health_port.h"

namespace spoke::netagent {

struct GatewayRoleSettings {
  uint16_t health_port = 9467;
  bool draining = false;
  // The file that makes the gateway drain as well while it is there; empty: there is none.
  std::string drain_file;

  bool operator==(const GatewayRoleSettings&) const = default;
};

// Not thread-safe; the agent's one loop owns it. Nodes whose checks find the port closed send no
// new flows; those that are established go on for as long as the agent's rules are there.
class GatewayRole {
 public:
  // `works` says whether the rules are in force. Borrows `loop` and `log`.
  GatewayRole(GatewayRoleSettings settings, std::function<bool()> works, os::EventLoop& loop,
              telemetry::Log& log);

  // Opens or closes the port, every kLook.
  void Tick(absl::Time now);
  absl::Time NextWake() const { return next_; }
  bool open() const { return port_.is_open(); }
  uint16_t port() const { return port_.port(); }

  static constexpr absl::Duration kLook = absl::Seconds(1);

 private:
  const GatewayRoleSettings settings_;
  const std::function<bool()> works_;
  telemetry::Log& log_;
  HealthPort port_;
  bool failed_ = false;
  absl::Time next_ = absl::InfinitePast();
};

}  // namespace spoke::netagent
