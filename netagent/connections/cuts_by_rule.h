// Counts how many connections a policy ends that were there before it, and how many it may. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/node_api/policy.h"

namespace spoke::netagent {

// The counts of a look at all tracked connections, by the rule that ends them.
struct CutsByRule {
  // The connections that are named, of those that end.
  static constexpr size_t kMaxFlows = node_api::kMaxCutFlows;

  uint64_t connections = 0;  // Those of pods and those to be cut; none that is closed or cut.
  uint64_t peer_spoke = 0;   // Those of them that end because peer spokes are kept apart.
  uint64_t egress = 0;       // Those of them that an egress policy ends.
  std::vector<node_api::CutFlow> flows = {};  // The first of those that end, at most kMaxFlows.

  uint64_t cut() const { return peer_spoke + egress; }
  bool operator==(const CutsByRule&) const = default;
};

// The part that the server is told: by which rule they end is for this node's metrics.
inline node_api::CutCount SaidOf(const CutsByRule& count) {
  return {.connections = count.connections, .cut = count.cut()};
}

// The part that a policy may cut without an operator's word. Both limits have to be exceeded to
// stop it, so that a node with a handful of connections is not one where each is a large share.
struct CutLimit {
  static constexpr uint64_t kAlwaysCut = 10;  // Connections.
  uint32_t permille = 0;                      // The part of the node's connections.

  bool Admits(const CutsByRule& count) const {
    return count.cut() <= kAlwaysCut || count.cut() * 1000 <= permille * count.connections;
  }
  bool operator==(const CutLimit&) const = default;
};

}  // namespace spoke::netagent
