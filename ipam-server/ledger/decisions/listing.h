// What follows from a complete list of the cloud's machines: which nodes are gone. Pure.
#pragma once

#include <set>
#include <vector>

#include "absl/time/time.h"
#include "ipam-server/ledger/effects.h"
#include "ipam-server/ledger/fleet.h"
#include "ipam-server/ledger/node_record.h"

namespace spoke::ipam {

// A complete listing has just these nodes. One that is missing twice in a row, and has no session
// (`connected`), is gone: its addresses are free. Freezes instead when too many are missing; one
// whose name another VM has taken does not count there, nor does one that holds nothing. Not while
// a recovery is under way: see GoneMeanwhile().
Effects OnListing(Fleet& fleet, const std::set<NodeKey>& present,
                  const std::set<NodeKey>& connected, absl::Time now);

// While nothing is freed, since the store may be an old one: the machines that are gone by the same
// rules, and need not be waited for (ledger/recovery.h). When too many are missing, or releases are
// frozen, only those whose name another VM has taken are.
std::vector<NodeKey> GoneMeanwhile(Fleet& fleet, const std::set<NodeKey>& present,
                                   const std::set<NodeKey>& connected);

// The machine is gone: its addresses are free after the cooldown.
void FreeGone(Fleet& fleet, NodeRecord& record, Effects& effects, absl::Time now);

}  // namespace spoke::ipam
