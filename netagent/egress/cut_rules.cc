#include "netagent/egress/cut_rules.h"

#include <algorithm>
#include <iterator>
#include <variant>
#include <vector>

namespace spoke::netagent {
namespace {

std::vector<ClassRange> PeersIn(const ClassMap& classes) {
  std::vector<ClassRange> peers;
  for (const ip::Family family : {ip::Family::kV4, ip::Family::kV6}) {
    const std::vector<ClassRange>& ranges = classes.ranges(family);
    std::copy_if(ranges.begin(), ranges.end(), std::back_inserter(peers),
                 [](const ClassRange& range) { return range.number == kPeerSpoke; });
  }
  return peers;
}

}  // namespace

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
    for (const ip::Address& address : pod.addresses)
      pods_[address] = {pod.pod_namespace, pod.pod_name};
  }
}

bool CutRules::EndNoMoreThan(const CutRules& in_force) const {
  if (egress_) return false;
  if (!cuts_peers_) return true;
  return in_force.cuts_peers_ && PeersIn(classes_) == PeersIn(in_force.classes_);
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
    const auto pod = pods_.find(began);
    if (pod != pods_.end() && egress_->CutsFlow(pod->second.pod_namespace, answers)) {
      return is_cut || flow.closed ? FlowFate::kStays : FlowFate::kCut;
    }
  }
  return is_cut ? FlowFate::kReleased : FlowFate::kStays;
}

node_api::CutFlow CutRules::Describe(const TrackedFlow& flow, FlowFate fate) const {
  const bool answers_here = !pods_.contains(flow.ends[0]) && pods_.contains(flow.ends[2]);
  const ip::Address& here = flow.ends.at(answers_here ? 2 : 0);
  node_api::CutFlow out{.address = here,
                        .far_address = flow.ends.at(answers_here ? 0 : 2),
                        .peer_spoke = fate == FlowFate::kEnded};
  if (const auto pod = pods_.find(here); pod != pods_.end()) {
    out.pod_namespace = pod->second.pod_namespace;
    out.pod_name = pod->second.name;
  }
  return out;
}

void CutRules::Count(const TrackedFlow& flow, FlowFate fate, CutsByRule& count) const {
  const bool ends = fate == FlowFate::kEnded || fate == FlowFate::kCut;
  if (ends && count.flows.size() < CutsByRule::kMaxFlows) {
    count.flows.push_back(Describe(flow, fate));
  }
  count.peer_spoke += fate == FlowFate::kEnded ? 1 : 0;
  count.egress += fate == FlowFate::kCut ? 1 : 0;
  if (flow.closed || flow.mark == claims::kFlowCut) {
    count.connections += fate == FlowFate::kEnded ? 1 : 0;
    return;
  }
  const bool counts = ends || pods_.contains(flow.ends[0]) || pods_.contains(flow.ends[2]);
  count.connections += counts ? 1 : 0;
}

}  // namespace spoke::netagent
