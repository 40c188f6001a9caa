// Makes of rules, pods, grants and what pods use what the kernel has to know. Pure.
//
// The tree of a direction: a class for each scope that has a limit of the node (its ceil), or none
// (unlimited); below it one for each team that has a grant or a limit; below that a leaf for each
// pod. A leaf's own rate is its weighted max-min share of what its nearest limited ancestor has
// (shape_tree.h), its ceil the pod's limit; the quantum goes by the weight, and never below 64 KiB,
// one offloaded packet, since less breaks the fairness. A leaf's queue holds what leaves it in
// kQueueTime at the rate it can expect now, which is never less than its part by weight, and never
// less than two packets. That of a leaf that shares holds what TCP keeps on its way when it sends
// 64 KiB at once, as far as that leaves it in kLongQueueTime: with room for one alone, TCP loses
// every other and falls behind.
// Rates are of payload; the queue charges frames, so classes have a little more (1514 bytes of
// frame for 1448 of TCP payload).
//
// A pod whose whole link is limited (CNI's capability "bandwidth") has, beside all that, a class of
// its own at the top of the tree of what pods send, as links/link_plan.h makes it of the
// options.
//
// Without a limit, grant or budget in force, a flow has no class. A budget's limit of new
// connections holds where these are opened, at egress, whatever the budget's direction.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "lib/ip/address.h"
#include "netagent/classes/traffic_class.h"
#include "netagent/classes/traffic_pod.h"
#include "netagent/shaping/budget_holder.h"
#include "netagent/shaping/shaping_rules.h"
#include "netagent/shaping/shaping_tables.h"

namespace spoke::netagent {

inline constexpr absl::Duration kQueueTime = absl::Milliseconds(50);
inline constexpr absl::Duration kLongQueueTime = absl::Milliseconds(100);
inline constexpr units::ByteCount kMinQuantum{65'536};
// The rate that stands for no limit.
inline constexpr units::ByteRate kUnlimitedRate = units::ToBytes(units::BitRate(100'000'000'000));

// Names a leaf over time, whatever number it has.
struct ShapedFlowKey {
  std::string host_link;
  uint32_t host_index = 0;
  ClassNumber scope = kInternet;
  TrafficDirection direction = TrafficDirection::kIngress;

  auto operator<=>(const ShapedFlowKey&) const = default;
};

struct PlannedFlow {
  ShapedFlowKey key;
  std::string pod_namespace;
  std::string pod_name;
  std::string team;    // The team as the budget calls it; "" and no budget: kNoTeam.
  std::string budget;  // The budget's name; "": there is none.
  bool shadow_budget = false;
  // The rate of payload that holds for this pod alone; zero: none.
  units::BitRate limit = {};
  units::BitRate shadow = {};  // The rate that would hold if it were enforced; zero: none.
  ShapeClassId class_id = 0;

  bool operator==(const PlannedFlow&) const = default;
};

// A bound to which flows together would be held if it were enforced: a budget's grant, a limit of a
// team or of the node.
struct ShadowBound {
  units::BitRate rate;        // The rate of payload.
  std::vector<size_t> flows;  // The flows' places in ShapingPlan::flows.

  bool operator==(const ShadowBound&) const = default;
};

struct ShapingPlan {
  ShapingTables tables;
  // The flows in the order of tables.flows, which has those of whole links behind them.
  std::vector<PlannedFlow> flows;
  // The bounds of teams, before those of the node.
  std::vector<ShadowBound> shadow_bounds;
  size_t dropped_flows = 0;  // The number of flows of pods that were left out.
  // The numbers of classes that have names, kept from plan to plan: the same thing keeps its class
  // while its parent is the same. The key is the name, which has the direction in it.
  std::map<std::string, ShapeClassId> ids;
  std::map<std::string, uint16_t> buckets;  // The numbers of buckets, by "budget/team".
  // The numbers given last: the next ones are those after them, so that a number that has become
  // free rests as long as it can.
  std::array<ShapeClassId, 2> last_ids{};
  uint16_t last_bucket = 0;
};

struct ShapingInputs {
  const ShapingRules& rules;
  const ClassMap& classes;
  const std::vector<TrafficPod>& pods;
  const std::vector<GrantInForce>& grants;
  // The group of each address that was learned from DNS.
  const std::map<ip::Address, ClassNumber>& learned;
  // The payload that a flow has offered of late; a flow that is not in it: nothing.
  const std::map<ShapedFlowKey, units::BitRate>& demand;
};

// Plans the shaping. What of `inputs` no limit, budget or pod's own options concern has no flow;
// without any flow the tables have at most the scopes, for the next ones, where some limit or
// budget is. `before` is the plan in force, whose numbers stay. Beyond
// kMaxShapedFlows pods are left out, the last ones first: see dropped_flows. A team of an enforced
// budget that `grants` does not have gets next to nothing. Pods whose link has no index, or one
// that an earlier pod has, are passed over.
ShapingPlan PlanShaping(const ShapingInputs& inputs, const ShapingPlan& before);

// Return the rate of frames for one of payload, rounded up, and back, rounded down.
units::ByteRate FrameRate(units::BitRate payload);
units::BitRate PayloadRate(units::ByteRate frames);

}  // namespace spoke::netagent
