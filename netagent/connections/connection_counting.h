// Counts the connections of each pod, on a thread of its own and seldom, for metrics and so that no
// pod takes what all need: observes how full the kernel's table is, lets
// connections/connection_shares decide when to list it and who has too much, and tells who holds
// them back.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/os/clock.h"
#include "lib/telemetry/log.h"
#include "netagent/connections/connection_shares.h"
#include "netagent/connections/connection_tally.h"
#include "netagent/connections/conntrack_table.h"

namespace spoke::netagent {

// Not thread-safe; the agent's one loop owns it.
class ConnectionCounting {
 public:
  struct Edges {
    ConntrackTable& table;  // Used on another thread while a pass is under way.
    const os::Clock& clock;
    telemetry::Log& log;
    // Runs work on the loop's thread, later. Thread-safe. The loop must not run anything of a
    // ConnectionCounting that is gone.
    std::function<void(std::function<void()>)> post;
    std::function<absl::StatusOr<TableUse>()> read_use;
    std::function<std::vector<PodConnections>()> pods;  // The present pods; without counts.
    // The functions of these names of Traffic; called on the loop's thread.
    std::function<std::optional<ConnectionShares>()> shares;
    std::function<void(const OverShare&)> on_over;
  };
  explicit ConnectionCounting(Edges edges) : edges_(std::move(edges)) {}
  ConnectionCounting(const ConnectionCounting&) = delete;
  ConnectionCounting& operator=(const ConnectionCounting&) = delete;
  // Waits for the pass that is under way, as long as the kernel takes for it.
  ~ConnectionCounting();

  // Glances at the table when it is time to, and begins a pass if one is due.
  void Tick();
  // When to call Tick(); InfiniteFuture while a pass is under way, whose end is posted.
  absl::Time NextWake() const;

  // The counts of the last pass; empty: there was none, and so nothing to find.
  const std::vector<PodConnections>& pods() const { return counted_; }

 private:
  void OnEnded(const std::shared_ptr<const ConnectionTally>& tally, const absl::Status& status);
  void SayWhoIsOver(const OverShare& over, const ConnectionShares& shares);

  const Edges edges_;
  TallyPasses passes_;
  std::vector<PodConnections> counted_;
  OverShare over_;
  absl::Status last_failure_;  // For saying each kind of failure once.
  std::thread thread_;
};

}  // namespace spoke::netagent
