// What the fleet's loop knows of nodes, read in short queries so that nobody waits for it.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ipam-server/loop/fleet_loop.h"
#include "ipam-server/nodes/fitness.h"
#include "ipam-server/nodes/reachability/reachability.h"
#include "ipam-server/nodes/reachability/reachability_settings.h"

namespace spoke::ipam {

// `domain_label`: the label of nodes whose value is their fault domain. For any thread but the
// loop's own. Errors: as AskLoop().
absl::StatusOr<FleetFacts> ReadFleetFacts(FleetLoop& loop, const std::string& domain_label,
                                          absl::Duration patience);

// Adds what is suspected of the networks of nodes at `now`. What was judged long ago, from less
// than a window, or not at all is not known: FitnessFacts::reach_unknown. `judged`: nullptr,
// nothing was.
void AddSuspicions(const Reachability* judged, const ReachabilitySettings& settings, absl::Time now,
                   FleetFacts& facts);

// For how long a check has to warn until it is told of the node: what passes is not written.
inline constexpr absl::Duration kWarnedFor = absl::Minutes(5);

// Returns the facts of one node at `now`. `session`: nullptr when its agent is away.
FitnessFacts FactsOf(const Fleet& fleet, const NodeRecord& record, const Session* session,
                     absl::Time now);

}  // namespace spoke::ipam
