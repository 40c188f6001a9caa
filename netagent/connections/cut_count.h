// How many connections a policy ends that were there before it, and how many it may. Pure.
#pragma once

#include <cstdint>

#include "lib/node_api/policy.h"

namespace spoke::netagent {

// Of a look at all tracked connections.
struct CutCount {
  uint64_t connections = 0;  // With a pod at an end, or to be cut. None that is closed or cut.
  uint64_t peer_spoke = 0;   // Of these, what ends since peer spokes are kept apart,
  uint64_t egress = 0;       // and what an egress policy ends.

  uint64_t cut() const { return peer_spoke + egress; }
  bool operator==(const CutCount&) const = default;
};

// What is said of it to the server: by which rule they end is for this node's metrics.
inline node_api::CutCount SaidOf(const CutCount& count) {
  return {.connections = count.connections, .cut = count.cut()};
}

// How much a policy may cut without an operator's word. Both have to be exceeded to stop it, so
// that a node with a handful of connections is not one where each is a large share.
struct CutLimit {
  static constexpr uint64_t kAlwaysCut = 10;  // Connections.
  uint32_t permille = 0;                      // Of the node's connections.

  bool Admits(const CutCount& count) const {
    return count.cut() <= kAlwaysCut || count.cut() * 1000 <= permille * count.connections;
  }
  bool operator==(const CutLimit&) const = default;
};

}  // namespace spoke::netagent
