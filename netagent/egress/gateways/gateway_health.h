// Decides which egress gateways work, from what their health checks found. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "netagent/egress/gateways/gateway_endpoint.h"

namespace spoke::netagent {

inline constexpr int kGatewayFailures = 3;   // Failures in a row, until one is taken out.
inline constexpr int kGatewaySuccesses = 2;  // Successes in a row, until it is taken in again.

class GatewayHealth {
 public:
  // Sets the gateways that are checked from now on. A new one counts as healthy until its first
  // answer: an agent that starts must not send everything the other way.
  void SetTargets(const std::set<GatewayEndpoint>& targets);

  // Takes what a check found. The first answer of a new one decides at once. Returns whether the
  // gateway has changed sides. One that is no target is ignored.
  bool OnResult(const GatewayEndpoint& gateway, bool works);

  std::set<GatewayEndpoint> Healthy() const;

 private:
  struct State {
    bool healthy = true;
    bool known = false;
    int against = 0;  // The number of answers in a row that speak against `healthy`.
  };
  std::map<GatewayEndpoint, State> states_;
};

}  // namespace spoke::netagent
