// Keeps taints and conditions of the cluster's nodes as the fleet is: observes both, plans, writes,
// reports.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ipam-server/nodes/fitness.h"
#include "ipam-server/nodes/node_plan.h"
#include "ipam-server/nodes/standing_board.h"
#include "lib/kubernetes/node_client.h"
#include "lib/os/clock.h"
#include "lib/telemetry/log.h"

namespace spoke::ipam {

class NodeSync {
 public:
  struct Settings {
    HoldTimes times;
    WriteLimits limits;
    absl::Duration period = absl::Seconds(5);  // Of reading what the fleet knows.
  };
  struct Edges {
    kubernetes::NodeClient& client;
    std::function<absl::StatusOr<FleetFacts>()> read_facts;
    const os::Clock& clock;
    telemetry::Log& log;
    StandingBoard& board;
    // Called when what is wrong has changed; empty: nothing is.
    std::function<void(const std::string& problem)> tell;
  };

  // Borrows the edges.
  NodeSync(const Settings& settings, Edges edges)
      : settings_(settings), edges_(std::move(edges)), planner_(settings.times, settings.limits) {}

  // Moves everything on, for `wait` at the longest. For one thread.
  void RunOnce(absl::Duration wait);

 private:
  void ReadFacts(absl::Time now);
  void TakeEnds(absl::Duration wait);
  void PlanAndWrite(absl::Time now);
  void Write(const NodeWrite& write, absl::Time now);
  void Report(absl::Time now);
  // What is wrong, and a word for its kind; both empty: nothing is.
  std::pair<std::string_view, std::string> Problem(absl::Time now) const;

  const Settings settings_;
  const Edges edges_;
  NodePlanner planner_;
  absl::StatusOr<FleetFacts> facts_ = absl::UnavailableError("not read yet");
  absl::Time begun_ = absl::InfiniteFuture();
  absl::Time next_facts_ = absl::InfinitePast();
  absl::Time next_plan_ = absl::InfinitePast();
  NodePlan plan_;               // The last, without its writes.
  absl::Status write_trouble_;  // Why the last write that ended failed; OK: it did not.
  std::string told_;
  std::string_view told_kind_;
  absl::Time told_at_ = absl::InfinitePast();
  std::array<uint64_t, kWriteResults> writes_{};
};

}  // namespace spoke::ipam
