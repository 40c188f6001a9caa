// Tells the server what pods have sent and received, and the node's checks how many packets that
// were, every ten seconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/os/clock.h"
#include "lib/telemetry/log.h"
#include "netagent/session/server_link.h"
#include "netagent/traffic/traffic_totals.h"

namespace spoke::netagent {

// Returns how many packets of all pods, those that have ended included, have a class or were
// dropped by a rule. Pure.
uint64_t CountedPackets(const TrafficTotals& totals);

// The reporter is not thread-safe; the agent's loop owns it.
class TrafficReporter {
 public:
  static constexpr absl::Duration kPeriod = absl::Seconds(10);
  static constexpr size_t kMaxPods = 20;
  // The most namespaces that are told; the rest is told as one.
  static constexpr size_t kMaxNamespaces = 1000;
  static constexpr std::string_view kOther = "_other";

  struct Edges {
    std::function<absl::StatusOr<TrafficTotals>()> read;  // Gives the totals as they are now.
    std::function<void(uint64_t)> say_counted = nullptr;  // Told CountedPackets(); may be null.
    ServerLink& server;
    const os::Clock& clock;
    telemetry::Log& log;
  };
  explicit TrafficReporter(Edges edges) : edges_(std::move(edges)) {}

  // Reports when it is time to. Totals that cannot be read are complained about once.
  void Tick();
  absl::Time NextWake() const { return next_; }

 private:
  node_api::TrafficReport ReportOf(TrafficTotals totals);

  const Edges edges_;
  absl::Time next_ = absl::InfinitePast();
  bool complained_ = false;
  // The namespaces that are told by their names: once one is, it stays, so that no sum falls.
  std::set<std::string> named_;
};

}  // namespace spoke::netagent
