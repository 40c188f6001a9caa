#include "tests/search/invariants.h"

namespace spoke::search {
namespace {

Mask PodsOf(const Node& node) {
  Mask pods = 0;
  for (const uint8_t pod : node.agent.pods) {
    if (pod != 0) pods |= BitOf(pod - 1U);
  }
  return pods;
}

// The agent knows each pod by what it has.
bool KnowsItsPods(const Agent& agent) {
  for (size_t i = 0; i < kPods; ++i) {
    if (agent.pods[i] == 0) continue;
    const Journalled& entry = agent.journal[agent.pods[i] - 1U];
    if (entry.use != AgentUse::kInUse || entry.pod != i + 1) return false;
  }
  return true;
}

}  // namespace

std::string_view CheckWorld(const World& world) {
  Mask with_pods = 0;
  Mask on_nics = 0;
  for (const Node& node : world.nodes) {
    const Mask pods = PodsOf(node);
    if (node.agent.pods[0] != 0 && node.agent.pods[0] == node.agent.pods[1]) {
      return "two pods of one node have one address";
    }
    if ((with_pods & pods) != 0) return "two nodes have pods with one address";
    if ((on_nics & node.nic) != 0) return "an address is on two NICs";
    if ((pods & ~node.nic) != 0) return "a pod has an address that is not on its node's NIC";
    if (!KnowsItsPods(node.agent)) return "an agent does not know a pod of its node";
    with_pods |= pods;
    on_nics |= node.nic;
  }
  if (world.unstored) return "a decision has changed a record that it does not store";
  return "";
}

std::string_view CheckNewPod(const World& before, const World& after, size_t node, uint8_t pod) {
  const Mask address = BitOf(after.nodes[node].agent.pods[pod - 1U] - 1U);
  for (size_t i = 0; i < kNodes; ++i) {
    if ((before.nodes[i].ended & address) != 0) {
      return "a pod has an address whose last pod has only just ended";
    }
  }
  return "";
}

}  // namespace spoke::search
