// The values that the agent's loop knows and metrics show.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "netagent/attach/add_counts.h"
#include "netagent/attach/lost_del_release.h"
#include "netagent/attach/repairer.h"
#include "netagent/connections/connection_clearing.h"
#include "netagent/connections/connection_tally.h"
#include "netagent/connections/established_cuts.h"
#include "netagent/dns/dns_names.h"
#include "netagent/shaping/shaping.h"
#include "netagent/traffic/traffic_totals.h"

namespace spoke::netagent {

struct AgentReading {
  // The totals, or why there are none: the node's traffic could not be read, or nothing counts it.
  absl::StatusOr<TrafficTotals> traffic = absl::UnimplementedError("traffic is not counted");
  RepairCounts repairs;
  LostDelCounts lost_dels;
  AddCounts adds;
  // The counts of clearing; nothing: the kernel cannot delete tracked connections.
  std::optional<ConnectionClearingCounts> clearing;
  // The connections of each pod; nothing: nobody counts.
  std::optional<std::vector<PodConnections>> connections;
  std::optional<EstablishedCutCounts> cuts;  // Nothing: the kernel cannot, or nothing is counted.
  std::optional<DnsNamesState> dns_names;    // Nothing: nobody listens.
  std::optional<ShapingState> shaping;       // Nothing: shaping is switched off.
};

}  // namespace spoke::netagent
