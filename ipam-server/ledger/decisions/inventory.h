// While the store may be older than what nodes were told (ledger/recovery.h): nothing is decided,
// and what nodes hold is gathered, until it is known or taken to be complete. It begins when
// somebody sets `hold.active`. Pure.
#pragma once

#include <set>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "ipam-server/ledger/effects.h"
#include "ipam-server/ledger/fleet.h"
#include "ipam-server/ledger/node_record.h"
#include "lib/node_api/assignments.h"

namespace spoke::ipam {

// Errors: kFailedPrecondition (a recovery is under way).
absl::Status CheckNotHeld(const Fleet& fleet);

// All that the node holds and assigns. What it was told of by a store that knew more is its own,
// unless another node has it and has yet to speak.
Effects OnInventory(Fleet& fleet, const NodeKey& key, const node_api::Inventory& inventory,
                    absl::Time now);
// Decides what is left open, in favour of the nodes in `spoken`. What a silent node has, stays.
Effects EndHold(Fleet& fleet, const std::set<NodeKey>& spoken, absl::Time now);
// Of `nodes` nobody has said what they have: what that is by the store may have left their NICs
// since, and pods that nobody told of may just have used it. Their agents are told of what no pod
// uses once it is found there, or put there again, and that it rests.
void Doubt(Fleet& fleet, const std::set<NodeKey>& nodes, Effects& effects, absl::Time now);

}  // namespace spoke::ipam
