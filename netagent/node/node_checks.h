// All checks that an agent makes of its node (lib/node_checks), with the threads that ask services,
// try what is to be reached and not, and look at the node itself.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <random>

#include "lib/os/clock.h"
#include "lib/telemetry/log.h"
#include "netagent/config.h"
#include "netagent/node/node_setup.h"
#include "netagent/node/node_watch.h"
#include "netagent/node/server_clock.h"
#include "netagent/node/service_watch.h"
#include "netagent/policy/reach_watch.h"

namespace spoke::netagent {

// Logs which of the node's settings were changed, and which could not be.
void LogSettings(const NodeSetupReport& made, telemetry::Log& log);

// Thread-safe. Destroyed last of all that calls it; waits for looks that are under way.
class NodeChecks {
 public:
  // Starts the threads, so the signals have to be blocked before. Borrows `log`.
  NodeChecks(const AgentConfig& config, telemetry::Log& log);

  // Takes what to try of the hub and of peer spokes.
  void SetTargets(node_checks::ReachTargets targets) { reach_.SetTargets(std::move(targets)); }
  // Takes how many packets of pods the agent has counted (CountedPackets()).
  void SetCounted(uint64_t packets) { counted_ = packets; }

  const NodeWatch& watch() const { return node_; }
  ServerClock& server_clock() { return server_clock_; }

 private:
  // What no agent has counted yet.
  static constexpr uint64_t kNotCounted = UINT64_MAX;

  NodeWatch::Examine Examine(const AgentConfig& config, telemetry::Log& log) const;

  ServerClock server_clock_;
  const std::unique_ptr<ServiceWatch> services_;
  std::atomic<uint64_t> counted_ = kNotCounted;
  os::RealClock clock_;
  std::mt19937_64 random_{std::random_device{}()};  // The thread's of `reach_`.
  ReachWatch reach_;
  NodeWatch node_;  // The last one: it looks at all that is above.
};

}  // namespace spoke::netagent
