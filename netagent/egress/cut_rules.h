// Decides which connections that were there before a policy it ends (`established: cut`). Pure.
//
// Rules alone end what they drop packet by packet: so it is with peer spokes, of which nothing is
// left but the entry that connection tracking has. An egress policy decides about a flow at its
// first packet (egress_rules.h). To end one that is decided about, its entry stays and bears
// claims::kFlowCut, which drops its packets in both directions; without the entry, the next packet
// from outside would begin it anew, and the pod's would pass as answers.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "lib/ip/address.h"
#include "netagent/claims.h"
#include "netagent/classes/traffic_class.h"
#include "netagent/classes/traffic_pod.h"
#include "netagent/connections/cuts_by_rule.h"
#include "netagent/egress/egress_rules.h"
#include "netagent/policy/policy_bundle.h"

namespace spoke::netagent {

// An entry of connection tracking.
struct TrackedFlow {
  // The source and destination of its first packet, then of the answers: see
  // netlink::TrackedConnection.
  std::array<ip::Address, 4> ends;
  uint32_t mark = 0;    // The mark, under claims::kFlowMarkMask.
  bool closed = false;  // Whether both ends are done with it.

  bool operator==(const TrackedFlow&) const = default;
};

enum class FlowFate : uint8_t {
  kStays,
  kEnded,  // The flow has an end in a peer spoke: its entry goes.
  // The flow is a pod's, and an egress policy drops it: its entry bears claims::kFlowCut from now
  // on.
  kCut,
  kReleased,  // The flow bears claims::kFlowCut, and no policy cuts it any more: its entry goes.
};

// Returns whether connections to peer spokes outlive the isolation from them: every ClusterNetwork
// that names peer spokes says so.
bool KeepsPeerSpokes(const Policy& policy);

// Everything that one policy cuts on this node; a value, which any thread may use.
class CutRules {
 public:
  // Cuts nothing.
  CutRules() = default;
  // Takes the pods that are here in `pods`, by any key.
  CutRules(const Policy& policy, const ClassMap& classes, const EgressRules& egress,
           const std::map<std::string, TrafficPod>& pods);

  // Returns whether there is nothing that it would cut.
  bool empty() const { return !cuts_peers_ && !egress_; }
  // Returns whether every connection that these end, those in force end as well, so that none is
  // left to count. Rules of egress policies count as others.
  bool EndNoMoreThan(const CutRules& in_force) const;
  FlowFate FateOf(const TrackedFlow& flow) const;
  // Adds `flow`, whose fate FateOf() has told, to `count`, and to its flows if it ends and there is
  // room.
  void Count(const TrackedFlow& flow, FlowFate fate, CutsByRule& count) const;

 private:
  struct Pod {
    std::string pod_namespace;
    std::string name;
  };

  node_api::CutFlow Describe(const TrackedFlow& flow, FlowFate fate) const;

  bool cuts_peers_ = false;
  ClassMap classes_;
  std::optional<EgressRules> egress_;  // The egress rules, when some policy cuts.
  std::map<ip::Address, Pod> pods_;    // By each of their addresses.
};

}  // namespace spoke::netagent
