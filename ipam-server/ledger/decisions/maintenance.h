// What follows when a cloud announces that it deletes a node's machine. Pure.
#pragma once

#include "absl/time/time.h"
#include "ipam-server/ledger/effects.h"
#include "ipam-server/ledger/fleet.h"
#include "ipam-server/ledger/node_record.h"
#include "lib/node_api/maintenance.h"

namespace spoke::ipam {

// For how long a node whose announcement was taken back is not believed another one, so that an
// agent that says both by turns cannot have its addresses taken off and put on all the time, at the
// cost of the cloud's calls and of the limit on releases of all nodes.
inline constexpr absl::Duration kNotBelieved = absl::Minutes(10);
// How long an announcement lasts in a session whose agent says nothing about it: it may have been
// replaced by an older one.
inline constexpr absl::Duration kUnsaidFor = absl::Minutes(10);

// Takes what the node's agent says, in place of what it said before: with a machine that is about
// to be deleted the node gets nothing more, and gives back what no pod uses.
Effects OnMaintenance(Fleet& fleet, const NodeKey& key, const node_api::Maintenance& maintenance,
                      absl::Time now);

// Ends what nobody says any more, and believes what has been said again for long enough.
void ExpireMaintenance(Fleet& fleet, Effects& effects, absl::Time now);

}  // namespace spoke::ipam
