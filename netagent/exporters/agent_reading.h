// What the agent's loop knows that metrics show. Values.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
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
  // Why not: the node's traffic could not be read, or nothing counts it.
  absl::StatusOr<TrafficTotals> traffic = absl::UnimplementedError("traffic is not counted");
  RepairCounts repairs;
  LostDelCounts lost_dels;
  // Nothing: the kernel cannot delete tracked connections.
  std::optional<ConnectionClearingCounts> clearing;
  // Of each pod. Nothing: nobody counts.
  std::optional<std::vector<PodConnections>> connections;
  std::optional<EstablishedCutCounts> cuts;  // Nothing: as above, or nothing is counted.
  std::optional<DnsNamesState> dns_names;    // Nothing: nobody listens.
  std::optional<ShapingState> shaping;       // Nothing: shaping is switched off.
};

}  // namespace spoke::netagent
