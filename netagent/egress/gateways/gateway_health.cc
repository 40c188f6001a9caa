#include "netagent/egress/gateways/gateway_health.h"

#include <utility>

namespace spoke::netagent {

void GatewayHealth::SetTargets(const std::set<GatewayEndpoint>& targets) {
  std::erase_if(states_, [&](const auto& entry) { return !targets.contains(entry.first); });
  for (const GatewayEndpoint& target : targets) states_[target];
}

bool GatewayHealth::OnResult(const GatewayEndpoint& gateway, bool works) {
  const auto found = states_.find(gateway);
  if (found == states_.end()) return false;
  State& state = found->second;
  const bool first = !std::exchange(state.known, true);
  if (works == state.healthy) {
    state.against = 0;
    return false;
  }
  ++state.against;
  if (!first && state.against < (state.healthy ? kGatewayFailures : kGatewaySuccesses))
    return false;
  state.healthy = works;
  state.against = 0;
  return true;
}

std::set<GatewayEndpoint> GatewayHealth::Healthy() const {
  std::set<GatewayEndpoint> healthy;
  for (const auto& [gateway, state] : states_) {
    if (state.healthy) healthy.insert(gateway);
  }
  return healthy;
}

}  // namespace spoke::netagent
