#include "netagent/egress/cut_rules.h"

#include <variant>

namespace spoke::netagent {

bool KeepsPeerSpokes(const Policy& policy) {
  bool keeps = false;
  for (const auto& [key, entry] : policy.entries) {
    const auto* network = std::get_if<policy::ClusterNetwork>(&entry.value);
    if (network == nullptr || network->peer_spoke.empty()) continue;
    if (network->established != policy::Established::kKeep) return false;
    keeps = true;
  }
  return keeps;
}

CutRules::CutRules(const Policy& policy, const ClassMap& classes, const EgressRules& egress,
                   const std::map<std::string, TrafficPod>& pods)
    : classes_(classes) {
  for (const auto& [key, entry] : policy.entries) {
    const auto* network = std::get_if<policy::ClusterNetwork>(&entry.value);
    cuts_peers_ = cuts_peers_ || (network != nullptr && !network->peer_spoke.empty());
  }
  cuts_peers_ = cuts_peers_ && !KeepsPeerSpokes(policy);
  if (egress.Cuts()) egress_ = egress;
  for (const auto& [key, pod] : pods) {
    for (const ip::Address& address : pod.addresses) namespaces_[address] = pod.pod_namespace;
  }
}

FlowFate CutRules::FateOf(const TrackedFlow& flow) const {
  // The ends are those by which packets are routed: to the address that a Service was translated
  // to, and from the one that began it.
  const ip::Address& began = flow.ends[0];
  const ip::Address& answers = flow.ends[2];
  if (cuts_peers_ && !flow.closed) {
    for (const ip::Address& end : {began, answers}) {
      if (classes_.ClassOf(end) == kPeerSpoke) return FlowFate::kEnded;
    }
  }
  const bool is_cut = flow.mark == claims::kFlowCut;
  if (egress_) {
    const auto pod = namespaces_.find(began);
    if (pod != namespaces_.end() && egress_->CutsFlow(pod->second, answers)) {
      return is_cut || flow.closed ? FlowFate::kStays : FlowFate::kCut;
    }
  }
  return is_cut ? FlowFate::kReleased : FlowFate::kStays;
}

void CutRules::Count(const TrackedFlow& flow, FlowFate fate, CutsByRule& count) const {
  count.peer_spoke += fate == FlowFate::kEnded ? 1 : 0;
  count.egress += fate == FlowFate::kCut ? 1 : 0;
  if (flow.closed || flow.mark == claims::kFlowCut) {
    count.connections += fate == FlowFate::kEnded ? 1 : 0;
    return;
  }
  const bool counts = fate == FlowFate::kEnded || fate == FlowFate::kCut ||
                      namespaces_.contains(flow.ends[0]) || namespaces_.contains(flow.ends[2]);
  count.connections += counts ? 1 : 0;
}

}  // namespace spoke::netagent
