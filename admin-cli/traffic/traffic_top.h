// The verbs `top namespaces`, teams, pods and nodes: who sends and receives how much.
#pragma once

#include "absl/status/statusor.h"
#include "admin-cli/session.h"
#include "admin-cli/traffic/traffic_rates.h"

namespace spoke::ctl {

// Reads the totals of what the command line names and prints them with their rates. Without --watch
// it reads twice; with it each call is one reading, and `rates` has those before.
absl::StatusOr<int> TrafficTop(Session& session, TrafficRates& rates);

}  // namespace spoke::ctl
