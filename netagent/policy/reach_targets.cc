#include "netagent/policy/reach_targets.h"

#include <algorithm>
#include <variant>
#include <vector>

namespace spoke::netagent {
namespace {

void Add(const std::vector<ip::Endpoint>& in, std::vector<ip::Endpoint>& out) {
  out.insert(out.end(), in.begin(), in.end());
}

void Tidy(std::vector<ip::Endpoint>& targets) {
  std::sort(targets.begin(), targets.end());
  targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
  if (targets.size() > kMaxReachTargets) targets.resize(kMaxReachTargets);
}

}  // namespace

node_checks::ReachTargets ReachTargetsOf(const Policy& policy) {
  node_checks::ReachTargets targets;
  for (const auto& [key, entry] : policy.entries) {
    const auto* const network = std::get_if<policy::ClusterNetwork>(&entry.value);
    if (network == nullptr) continue;
    Add(network->hub_probes, targets.hub);
    Add(network->peer_spoke_probes, targets.peer_spoke);
  }
  Tidy(targets.hub);
  Tidy(targets.peer_spoke);
  return targets;
}

}  // namespace spoke::netagent
