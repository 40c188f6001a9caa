// Which nodes have the present policy in force. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/node_api/policy.h"

namespace spoke::ipam {

// What is known of one node.
struct NodePolicy {
  std::string node;
  bool connected = false;
  uint64_t acked = 0;           // The version the agent has in force; 0: none, or not known.
  std::string error;            // Why it refused the newest one it was sent; empty: it did not.
  bool held = false;            // The error is that it would end more connections than it may.
  node_api::CutCount cut = {};  // What the newest one has ended, or would end when `held`.
};

// A node counts in exactly one of the four.
struct Rollout {
  uint64_t version = 0;
  uint64_t nodes = 0;
  uint64_t current = 0;
  uint64_t refused = 0;  // Nodes connected, not on `version`, with an error.
  uint64_t held = 0;     // The refused ones that go on when an operator says so.
  uint64_t pending = 0;  // Nodes connected, not on `version`, that have not answered yet.
  uint64_t away = 0;
  node_api::CutCount done;     // The current nodes' counts, as far as they have counted.
  node_api::CutCount waiting;  // The held nodes' counts.
  // Positions in the input of the refused and the pending: the refused first, then by name.
  std::vector<size_t> behind;
};

inline constexpr size_t kMaxBehind = 1000;

// `behind` names at most kMaxBehind. A node that is away counts as away, whatever it had.
Rollout SummarizeRollout(uint64_t version, std::span<const NodePolicy> nodes);

}  // namespace spoke::ipam
