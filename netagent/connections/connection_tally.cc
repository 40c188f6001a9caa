#include "netagent/connections/connection_tally.h"

#include <algorithm>
#include <utility>

namespace spoke::netagent {
namespace {

// Counts by the algorithm of Misra and Gries, "Finding repeated elements" (1982): whoever has more
// than a share of 1/(n+1) of all is among n counters at the end.
void CountTarget(std::vector<PodConnections::AtTarget>& targets, const ConnectionTarget& target) {
  const auto known = std::find_if(targets.begin(), targets.end(),
                                  [&](const auto& at) { return at.target == target; });
  if (known != targets.end()) {
    ++known->connections;
    return;
  }
  if (targets.size() < ConnectionTally::kTargets) {
    targets.push_back({.target = target, .connections = 1});
    return;
  }
  for (PodConnections::AtTarget& at : targets) --at.connections;
  std::erase_if(targets, [](const auto& at) { return at.connections == 0; });
}

}  // namespace

ConnectionTally::ConnectionTally(std::vector<PodConnections> pods) : pods_(std::move(pods)) {
  for (size_t i = 0; i < pods_.size(); ++i) {
    for (const ip::Address& address : pods_[i].addresses) pod_of_.emplace(address, i);
  }
  Reset();
}

void ConnectionTally::Reset() {
  seen_ = 0;
  for (PodConnections& pod : pods_) {
    pod.connections = 0;
    pod.translated_ports = 0;
    pod.targets.clear();
  }
}

void ConnectionTally::Add(const std::array<ip::Address, 4>& ends, uint8_t protocol, uint16_t port) {
  ++seen_;
  const auto [source, destination, answering, answered] = ends;
  const auto found = pod_of_.find(source);
  if (found == pod_of_.end()) return;
  PodConnections& pod = pods_[found->second];
  ++pod.connections;
  if (answered == source) return;
  ++pod.translated_ports;
  CountTarget(pod.targets, {.address = answering, .protocol = protocol, .port = port});
}

}  // namespace spoke::netagent
