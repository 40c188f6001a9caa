// What nodes get, and what they are asked to give back. Pure.
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "ipam-server/ledger/effects.h"
#include "ipam-server/ledger/fleet.h"
#include "ipam-server/ledger/node_record.h"
#include "ipam-server/ledger/scarcity.h"
#include "lib/ip/prefix.h"

namespace spoke::ipam {

// Assigns what the node lacks to its target. Safe at any time; of an unknown node it does nothing.
Effects PlanNode(Fleet& fleet, const NodeKey& key, absl::Time now);

// How a node is looked at for what it has too much of.
struct Review {
  double jitter = 0;  // In [0, 1): spreads what becomes due at once.
  // Its agent is there to be asked. Nothing is asked of one that is not, and what it was asked for
  // it has not given up.
  bool connected = true;
  // What pods elsewhere wait for; what this node is asked for on their behalf is taken off.
  // Borrowed; nullptr: nothing.
  Scarcity* scarcity = nullptr;
};

// Does what PlanNode() does, and asks for what the node has too much of. Call it for each node
// about once a review period.
Effects ReviewNode(Fleet& fleet, const NodeKey& key, const Review& review, absl::Time now);

// How many addresses nodes hold, in any state, without what the cloud has yet to choose: of these
// the breaker lets a share go.
uint64_t AddressesHeld(const Fleet& fleet);
uint64_t AddressesHeld(const NodeRecord& record);

// Returns whether so many addresses may go at once, as the breaker judges; it may freeze. `node`:
// of which they are, for the finding.
bool MayFree(Fleet& fleet, uint64_t would_free, const NodeKey& node, Effects& effects,
             absl::Time now);
// Returns whether the breaker has let the range go, and that still counts: it is not asked again.
// An agent that answers later than that frees something that is to be judged anew.
bool IsJudged(const Fleet& fleet, const ip::Prefix& range, absl::Time now);
// Notes that the range has not gone, though the breaker had let it go.
void TakeBack(Fleet& fleet, const ip::Prefix& range, Effects& effects, absl::Time now);

}  // namespace spoke::ipam
