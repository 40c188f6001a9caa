// What follows from what an agent reports of its assignments, and from what an audit has found them
// to be. Pure.
#pragma once

#include "absl/time/time.h"
#include "ipam-server/ledger/effects.h"
#include "ipam-server/ledger/fleet.h"
#include "ipam-server/ledger/node_record.h"
#include "lib/node_api/assignments.h"

namespace spoke::ipam {

// Stale parts of a report (an older generation, an address the node does not hold) change nothing;
// of an unknown node, all of it.
Effects OnReport(Fleet& fleet, const NodeKey& key, const node_api::AssignmentReport& report,
                 absl::Time now);

// Records that the node's agent assigns the address, as an audit has found it to do.
Effects OnAuditedAssignment(Fleet& fleet, const NodeKey& key,
                            const node_api::Assignment& assignment, absl::Time now);

}  // namespace spoke::ipam
