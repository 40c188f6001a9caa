#include "ipam-server/policy/objects/rollout.h"

#include <algorithm>
#include <string_view>
#include <tuple>

namespace spoke::ipam {

Rollout SummarizeRollout(uint64_t version, std::span<const NodePolicy> nodes) {
  Rollout rollout{.version = version, .nodes = nodes.size(), .behind = {}};
  const auto add = [](const node_api::CutCount& cut, node_api::CutCount& sum) {
    sum.connections += cut.connections;
    sum.cut += cut.cut;
  };
  for (size_t i = 0; i < nodes.size(); ++i) {
    const NodePolicy& node = nodes[i];
    if (!node.connected) {
      ++rollout.away;
    } else if (node.acked == version) {
      ++rollout.current;
      add(node.cut, rollout.done);
    } else {
      ++(node.error.empty() ? rollout.pending : rollout.refused);
      rollout.behind.push_back(i);
      if (!node.held) continue;
      ++rollout.held;
      add(node.cut, rollout.waiting);
    }
  }
  std::sort(rollout.behind.begin(), rollout.behind.end(), [&](size_t a, size_t b) {
    return std::tuple(nodes[a].error.empty(), std::string_view(nodes[a].node), a) <
           std::tuple(nodes[b].error.empty(), std::string_view(nodes[b].node), b);
  });
  if (rollout.behind.size() > kMaxBehind) rollout.behind.resize(kMaxBehind);
  return rollout;
}

}  // namespace spoke::ipam
