// What pods wait for while their pools have no address left, so that nodes with more than they need
// give it up at once and not when it has been idle for long. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/time/time.h"
#include "ipam-server/ledger/fleet.h"
#include "ipam-server/ledger/node_record.h"

namespace spoke::ipam {

// What an agent was asked for is on its way for kAnswerTime only: one that does not answer must not
// keep others from being asked.
inline constexpr absl::Duration kAnswerTime = absl::Seconds(10);

struct Scarcity {
  // Addresses that are missing and are not on their way: in cooldown, being detached, or asked for.
  // Keyed by the pools, as indices, any of which would do; none is zero.
  std::map<std::vector<size_t>, uint64_t> missing = {};
  // The nodes of pods that wait and for which addresses are free now.
  std::vector<NodeKey> servable = {};
  NodeKey last = {};  // The node that was looked at last.

  // Returns how many are missing for which an address of any of these pools would do.
  uint64_t Of(const std::vector<size_t>& pools) const;
  // Notes that so many addresses of the pool are on their way now.
  void Subtract(size_t pool, uint64_t addresses);
};

// Nothing is missing while a recovery is under way. Looks at up to `nodes` of the nodes where pods
// wait, in turn: those behind `after` come first. Of more than these, the rest is missing a moment
// later.
//
// Only what pods wait for counts; that a node has fewer spare addresses than it should is no reason
// to take any from another.
Scarcity ScarcityOf(const Fleet& fleet, const NodeKey& after, size_t nodes, absl::Time now);

}  // namespace spoke::ipam
