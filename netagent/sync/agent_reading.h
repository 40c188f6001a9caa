// What the agent's loop knows that metrics show. Values.
#pragma once

#include "absl/status/statusor.h"
#include "netagent/core/traffic_totals.h"
#include "netagent/sync/repairer.h"

namespace spoke::netagent {

struct AgentReading {
  // Why not: the node's traffic could not be read, or nothing counts it.
  absl::StatusOr<TrafficTotals> traffic = absl::UnimplementedError("traffic is not counted");
  RepairCounts repairs;
};

}  // namespace spoke::netagent
