#include "netagent/shaping/shaping_plan.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "fmt/core.h"
#include "lib/ip/prefix.h"
#include "netagent/classes/address_ranges.h"
#include "netagent/links/link_plan.h"
#include "netagent/shaping/shape_tree.h"

namespace spoke::netagent {
namespace {

// The bytes of a frame of TCP over Ethernet with an MTU of 1,500 and time stamps; less is lost to
// headers with more.
constexpr uint64_t kFrame = 1514;
constexpr uint64_t kPayloadBits = 1448UL * 8;
// The greatest number of a bucket; number 0 is none.
constexpr uint32_t kMaxBucketId = kMaxConnectionBuckets - 1;

constexpr size_t At(TrafficDirection direction) { return static_cast<size_t>(direction); }

bool Enforced(const RateLimit& limit) { return !limit.rate.is_zero() && !limit.shadow; }
bool Shadowed(const RateLimit& limit) { return !limit.rate.is_zero() && limit.shadow; }

units::ByteRate LimitOf(units::BitRate payload) {
  return std::clamp(FrameRate(payload), kMinLimit, kMaxLimit);
}

// Returns the lower of two limits; zero is none.
units::ByteRate Lower(units::ByteRate one, units::ByteRate other) {
  if (one.is_zero() || other.is_zero()) return std::max(one, other);
  return std::min(one, other);
}

// Gives `names` numbers from 1 to `most`: those they had, or the ones that follow `last`.
template <typename Number>
std::map<std::string, Number> Numbered(const std::vector<std::string>& names,
                                       const std::map<std::string, Number>& before, Number& last,
                                       uint32_t most) {
  std::map<std::string, Number> numbers;
  std::set<Number> taken;
  for (const std::string& name : names) {
    const auto found = before.find(name);
    if (found == before.end()) continue;
    numbers.insert(*found);
    taken.insert(found->second);
  }
  for (const std::string& name : names) {
    if (numbers.contains(name) || taken.size() >= most) continue;
    do {
      last = static_cast<Number>(last >= most ? 1 : last + 1);
    } while (!taken.insert(last).second);
    numbers.emplace(name, last);
  }
  return numbers;
}

// The least rate of a link: the kernel keeps a burst as the time that it takes, up to 274 s, and
// what a class owes up to 60 s.
constexpr units::ByteRate kMinLinkRate{125};
// The rate from which on a class has paid for an offloaded packet in seconds, so that its queue can
// take one. Below, packets must be short.
constexpr units::ByteRate kOffloadingRate{16'384};

// Returns the class that the link's options come to, without a number.
ShapeClass ClassOf(const LinkShaping& shaping) {
  const units::ByteRate rate = std::max(shaping.rate, kMinLinkRate);
  return {
      .rate = rate,
      .ceil = rate,
      .burst = shaping.burst,
      .quantum = kMinQuantum,
      .queue = rate < kOffloadingRate ? shaping.limit : std::max(shaping.limit, kOffloadedPacket)};
}

// Everything that holds for all pods in one scope and direction.
struct Place {
  ClassNumber scope = kInternet;
  TrafficDirection direction = TrafficDirection::kIngress;
  RateLimit node;
  const ResolvedBudget* budget = nullptr;

  bool budget_enforced() const { return budget != nullptr && !budget->shadow; }
};

// A flow that there will be, unless there is no room for its pod.
struct Draft {
  PlannedFlow flow;
  const Place* place = nullptr;
  RateLimit team_limit;
  std::string team;    // The team as the policy calls it.
  std::string bucket;  // The name of the bucket; "": there is none.
  uint32_t per_second = 0;
  uint32_t weight = 1;
  bool led = false;  // Whether it is led by way of a class.
};

// A pod's whole link, in the tree of what pods send.
struct LinkDraft {
  std::string name;
  uint32_t host_index = 0;
  LinkShaping shaping;
};

class Planner {
 public:
  Planner(const ShapingInputs& inputs, const ShapingPlan& before)
      : inputs_(inputs), before_(before) {
    for (const ClassNumber scope : inputs.rules.scopes()) {
      for (const TrafficDirection direction : kBothDirections) {
        places_.push_back({.scope = scope,
                           .direction = direction,
                           .node = inputs.rules.NodeLimit(scope, direction),
                           .budget = inputs.rules.Budget(scope, direction)});
      }
    }
    for (const GrantInForce& grant : inputs.grants) grants_[{grant.budget, grant.team}] = &grant;
  }

  ShapingPlan Plan() && {
    AddFlows();
    NumberClasses();
    NumberBuckets();
    AddShadowBounds();
    if (!plan_.flows.empty() || inputs_.rules.limits_pods()) AddScopes();
    return std::move(plan_);
  }

 private:
  // A tree without numbers, which knows where which name is.
  struct Tree {
    std::vector<ShapeNode> nodes;
    std::map<std::string, size_t> index;
  };

  void AddFlows() {
    std::set<uint32_t> seen = {0};
    for (const TrafficPod& pod : inputs_.pods) {
      if (!seen.insert(pod.host_index).second) continue;
      AddLink(pod);
      std::vector<Draft> drafts;
      const std::string team = inputs_.rules.TeamOf(pod.pod_namespace);
      for (const Place& place : places_) AppendDraft(pod, team, place, drafts);
      const size_t flows = links_.size() + drafts_.size() + drafts.size();
      if (plan_.dropped_flows != 0 || flows > kMaxShapedFlows) {
        plan_.dropped_flows += drafts.size();
        continue;
      }
      for (Draft& draft : drafts) drafts_.push_back(std::move(draft));
    }
  }

  // Adds the pod's link, which is never left out: there are far fewer pods on a node than there is
  // room for flows.
  void AddLink(const TrafficPod& pod) {
    const cni::Bandwidth& options = pod.bandwidth;
    const auto shaping = PlanLinkShaping(options.egress_rate, options.egress_burst, pod.mtu);
    if (!shaping) return;
    links_.push_back({.name = fmt::format("link/{}/{}", pod.host_link, pod.host_index),
                      .host_index = pod.host_index,
                      .shaping = *shaping});
  }

  void AppendDraft(const TrafficPod& pod, const std::string& team, const Place& place,
                   std::vector<Draft>& drafts) const {
    const RateLimit limit = inputs_.rules.PodLimit(pod, place.scope, place.direction);
    Draft draft{.flow = {.key = {.host_link = pod.host_link,
                                 .host_index = pod.host_index,
                                 .scope = place.scope,
                                 .direction = place.direction},
                         .pod_namespace = pod.pod_namespace,
                         .pod_name = pod.pod_name,
                         .team = team,
                         .limit = limit.shadow ? units::BitRate() : limit.rate,
                         .shadow = limit.shadow ? limit.rate : units::BitRate()},
                .place = &place,
                .team_limit = inputs_.rules.TeamLimit(team, place.scope, place.direction),
                .team = team,
                .weight = std::max<uint32_t>(pod.internet.weight, 1)};
    if (place.budget != nullptr) {
      draft.flow.budget = place.budget->name;
      draft.flow.shadow_budget = place.budget->shadow;
      draft.flow.team = std::string(place.budget->TeamIn(team));
    }
    draft.led = Enforced(limit) || Enforced(place.node) || Enforced(draft.team_limit) ||
                place.budget_enforced();
    const bool counted = !limit.rate.is_zero() || !place.node.rate.is_zero() ||
                         !draft.team_limit.rate.is_zero() || place.budget != nullptr;
    const bool opens =
        place.direction == TrafficDirection::kEgress && ChooseBucket(team, place.scope, draft);
    if (draft.led || counted || opens) drafts.push_back(std::move(draft));
  }

  // Returns whether new connections are to be counted here. Of the two directions' budgets, only
  // one can hold them back: the one that lets fewer pass.
  bool ChooseBucket(const std::string& team, ClassNumber scope, Draft& draft) const {
    bool counted = false;
    for (const TrafficDirection direction : kBothDirections) {
      const ResolvedBudget* budget = inputs_.rules.Budget(scope, direction);
      if (budget == nullptr) continue;
      const std::string known_as(budget->TeamIn(team));
      const GrantInForce* grant = GrantOf(budget->name, known_as);
      if (grant == nullptr || grant->connections == 0) continue;
      counted = true;
      if (budget->shadow || (draft.per_second != 0 && draft.per_second <= grant->connections)) {
        continue;
      }
      draft.bucket = budget->name + "/" + known_as;
      draft.per_second = grant->connections;
    }
    return counted;
  }

  const GrantInForce* GrantOf(const std::string& budget, const std::string& team) const {
    const auto found = grants_.find({budget, team});
    return found == grants_.end() ? nullptr : found->second;
  }

  // Returns the index + 1 of the node of that name, which is made if there is none.
  static size_t Put(Tree& tree, ShapeNode node) {
    const auto [known, added] = tree.index.emplace(node.name, tree.nodes.size() + 1);
    if (added) tree.nodes.push_back(std::move(node));
    return known->second;
  }

  // Returns the index + 1 of the class below which the flow's leaf is.
  size_t ParentOf(const Draft& draft, Tree& tree) const {
    const Place& place = *draft.place;
    std::string name = fmt::format(
        "{}/{}", place.direction == TrafficDirection::kIngress ? "in" : "out", place.scope);
    const units::ByteRate node_limit =
        Enforced(place.node) ? LimitOf(place.node.rate) : units::ByteRate();
    size_t parent = Put(tree, {.name = name, .limit = node_limit});
    units::ByteRate team_limit =
        Enforced(draft.team_limit) ? LimitOf(draft.team_limit.rate) : units::ByteRate();
    if (place.budget_enforced()) {
      const GrantInForce* grant = GrantOf(place.budget->name, draft.flow.team);
      units::ByteRate limit = LimitOf(grant == nullptr ? units::BitRate() : grant->rate);
      const bool of_the_others = draft.flow.team != draft.team;
      if (!of_the_others) limit = Lower(limit, std::exchange(team_limit, units::ByteRate()));
      name += "/team/" + draft.flow.team;
      parent = Put(tree, {.name = name, .parent = parent, .limit = limit});
    }
    // A team's limit holds also below a budget's other teams.
    if (!team_limit.is_zero()) {
      name += "/team/" + draft.team;
      parent = Put(tree, {.name = name, .parent = parent, .limit = team_limit});
    }
    return parent;
  }

  void NumberClasses() {
    std::array<Tree, 2> trees;
    std::vector<size_t> leaves;  // The leaves of drafts_, as index + 1.
    for (const Draft& draft : drafts_) {
      leaves.push_back(draft.led ? PutLeaf(draft, trees[At(draft.place->direction)]) : 0);
    }
    plan_.last_ids = before_.last_ids;
    for (const TrafficDirection direction : kBothDirections) {
      NumberTree(direction, trees[At(direction)]);
    }
    for (size_t i = 0; i < drafts_.size(); ++i) {
      PlannedFlow& flow = plan_.flows.emplace_back(drafts_[i].flow);
      if (leaves[i] != 0) {
        const TrafficDirection direction = flow.key.direction;
        flow.class_id = plan_.ids.at(trees[At(direction)].nodes[leaves[i] - 1].name);
      }
      plan_.tables.flows.push_back({.host_index = flow.key.host_index,
                                    .scope = flow.key.scope,
                                    .direction = flow.key.direction,
                                    .class_id = flow.class_id});
    }
    for (const LinkDraft& link : links_) {
      plan_.tables.flows.push_back({.host_index = link.host_index,
                                    .scope = kWholeLink,
                                    .direction = TrafficDirection::kEgress,
                                    .class_id = plan_.ids.at(link.name)});
    }
  }

  // Puts the leaf. A leaf's name holds its parent's: the kernel cannot give a class another parent.
  size_t PutLeaf(const Draft& draft, Tree& tree) const {
    const size_t parent = ParentOf(draft, tree);
    const ShapedFlowKey& key = draft.flow.key;
    const auto demand = inputs_.demand.find(key);
    return Put(
        tree,
        {.name = fmt::format("{}/pod/{}/{}", tree.nodes[parent - 1].name, key.host_link,
                             key.host_index),
         .parent = parent,
         .leaf = true,
         .limit = draft.flow.limit.is_zero() ? units::ByteRate() : LimitOf(draft.flow.limit),
         .weight = draft.weight,
         .demand = demand == inputs_.demand.end() ? units::ByteRate() : FrameRate(demand->second)});
  }

  void NumberTree(TrafficDirection direction, const Tree& tree) {
    std::map<ShapeClassId, const ShapeClass*> former_ids;
    for (const ShapeClass& shape : before_.tables.trees[At(direction)]) {
      former_ids[shape.id] = &shape;
    }
    std::map<std::string, ShapeClass> former;
    std::vector<std::string> names;
    for (const ShapeNode& node : tree.nodes) {
      names.push_back(node.name);
      const auto id = before_.ids.find(node.name);
      if (id == before_.ids.end()) continue;
      if (const auto found = former_ids.find(id->second); found != former_ids.end()) {
        former.emplace(node.name, *found->second);
      }
    }
    if (direction == TrafficDirection::kEgress) {
      for (const LinkDraft& link : links_) names.push_back(link.name);
    }
    const auto ids = Numbered(names, before_.ids, plan_.last_ids[At(direction)], kMaxShapeClassId);
    const std::vector<RatedClass> rated = RateTree(tree.nodes, former);
    for (size_t i = 0; i < tree.nodes.size(); ++i) {
      ShapeClass shape = rated[i].shape;
      const size_t parent = tree.nodes[i].parent;
      shape.id = ids.at(tree.nodes[i].name);
      shape.parent = parent == 0 ? 0 : ids.at(tree.nodes[parent - 1].name);
      plan_.tables.trees[At(direction)].push_back(shape);
    }
    for (const LinkDraft& link : links_) {
      if (direction == TrafficDirection::kIngress) break;
      ShapeClass& shape = plan_.tables.trees[At(direction)].emplace_back(ClassOf(link.shaping));
      shape.id = ids.at(link.name);
    }
    plan_.ids.insert(ids.begin(), ids.end());
  }

  void NumberBuckets() {
    std::map<std::string, uint32_t> rates;
    std::vector<std::string> names;
    for (const Draft& draft : drafts_) {
      if (draft.bucket.empty()) continue;
      if (rates.emplace(draft.bucket, draft.per_second).second) names.push_back(draft.bucket);
    }
    plan_.last_bucket = before_.last_bucket;
    plan_.buckets = Numbered(names, before_.buckets, plan_.last_bucket, kMaxBucketId);
    for (const auto& [name, id] : plan_.buckets) {
      plan_.tables.buckets.push_back({.id = id, .per_second = rates.at(name)});
    }
    for (size_t i = 0; i < drafts_.size(); ++i) {
      const auto found = plan_.buckets.find(drafts_[i].bucket);
      if (found != plan_.buckets.end()) plan_.tables.flows[i].bucket = found->second;
    }
  }

  void AddShadowBounds() {
    enum Order { kOfTeam, kOfBudget, kOfNode };
    std::map<std::tuple<Order, const Place*, std::string>, ShadowBound> bounds;
    const auto bind = [&](Order order, size_t flow, const std::string& team, units::BitRate rate) {
      ShadowBound& bound = bounds[{order, drafts_[flow].place, team}];
      bound.rate = rate;
      bound.flows.push_back(flow);
    };
    for (size_t i = 0; i < drafts_.size(); ++i) {
      const Draft& draft = drafts_[i];
      const Place& place = *draft.place;
      if (Shadowed(draft.team_limit)) bind(kOfTeam, i, draft.team, draft.team_limit.rate);
      if (Shadowed(place.node)) bind(kOfNode, i, "", place.node.rate);
      if (place.budget == nullptr || !place.budget->shadow) continue;
      const GrantInForce* grant = GrantOf(place.budget->name, draft.flow.team);
      bind(kOfBudget, i, draft.flow.team, grant == nullptr ? units::BitRate() : grant->rate);
    }
    for (auto& [key, bound] : bounds) plan_.shadow_bounds.push_back(std::move(bound));
  }

  void AddScopes() {
    const std::vector<ClassNumber>& scopes = inputs_.rules.scopes();
    size_t prefixes = 0;
    for (const ip::Family family : {ip::Family::kV4, ip::Family::kV6}) {
      for (const ClassRange& range : inputs_.classes.ranges(family)) {
        if (!std::binary_search(scopes.begin(), scopes.end(), range.number)) continue;
        plan_.tables.scopes.push_back(range);
        if (!inputs_.learned.empty()) prefixes += BlocksOf(range.first, range.last).size();
      }
    }
    for (const auto& [address, group] : inputs_.learned) {
      // The addresses that a name resolves to do not make a node's own networks the Internet's.
      const ClassNumber known = inputs_.classes.ClassOf(address);
      if (known != kInternet && known != group) continue;
      if (prefixes++ >= kMaxShapedPrefixes) return;
      plan_.tables.learned.push_back({.first = address, .last = address, .number = group});
    }
  }

  const ShapingInputs& inputs_;
  const ShapingPlan& before_;
  std::vector<Place> places_;
  std::map<std::pair<std::string, std::string>, const GrantInForce*> grants_;
  std::vector<Draft> drafts_;
  std::vector<LinkDraft> links_;
  ShapingPlan plan_;
};

}  // namespace

ShapingPlan PlanShaping(const ShapingInputs& inputs, const ShapingPlan& before) {
  return Planner(inputs, before).Plan();
}

units::ByteRate FrameRate(units::BitRate payload) {
  const uint64_t bits = payload.count();
  const uint64_t rest = bits % kPayloadBits;
  return units::ByteRate(bits / kPayloadBits * kFrame +
                         (rest * kFrame + kPayloadBits - 1) / kPayloadBits);
}

units::BitRate PayloadRate(units::ByteRate frames) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  const uint64_t bytes = frames.count();
  const uint64_t whole = bytes / kFrame;
  if (whole >= kMost / kPayloadBits) return units::BitRate(kMost);
  return units::BitRate(whole * kPayloadBits + bytes % kFrame * kPayloadBits / kFrame);
}

}  // namespace spoke::netagent
