#include "netagent/core/gateway_health.h"

#include <utility>

namespace spoke::netagent {

void GatewayHealth::SetTargets(const std::set<ip::Address>& targets) {
  std::erase_if(states_, [&](const auto& entry) { return !targets.contains(entry.first); });
  for (const ip::Address& target : targets) states_[target];
}

bool GatewayHealth::OnResult(const ip::Address& gateway, bool works) {
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

std::set<ip::Address> GatewayHealth::Healthy() const {
  std::set<ip::Address> healthy;
  for (const auto& [address, state] : states_) {
    if (state.healthy) healthy.insert(address);
  }
  return healthy;
}

}  // namespace spoke::netagent
