#include "netagent/shaping/shaping_meter.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace spoke::netagent {
namespace {

// The part from which on a rate counts as full. It is above 1 / kHeadroom, and above 1 / 1.005,
// which is what the server leaves a team when all want more, or a flow that has all it wants would
// want several times that.
constexpr double kFull = 0.997;
// The longest wait that does not count: what waits no longer has only just come, and will leave at
// once.
constexpr absl::Duration kPassing = absl::Milliseconds(10);
// The part of a full total below which a flow is not the one that fills it.
constexpr double kSmallPart = 0.01;

using TeamKey = std::pair<std::string, std::string>;

// Returns what a total has grown by.
template <typename T>
T Growth(T now, T before) {
  return now >= before ? now - before : now;
}

uint64_t PerSecond(uint64_t count, absl::Duration interval) {
  return static_cast<uint64_t>(
      std::llround(static_cast<double>(count) / absl::ToDoubleSeconds(interval)));
}

units::ByteRate PerSecond(units::ByteCount size, absl::Duration interval) {
  return units::ByteRate(PerSecond(size.count(), interval));
}

units::BitRate Times(double factor, units::BitRate rate) {
  return units::BitRate(static_cast<uint64_t>(factor * static_cast<double>(rate.count())));
}

units::ByteCount BytesOf(units::BitRate rate, absl::Duration interval) {
  constexpr double kBits{units::kBitsAByte};
  return units::ByteCount(static_cast<uint64_t>(static_cast<double>(rate.count()) / kBits *
                                                absl::ToDoubleSeconds(interval)));
}

// The parts of a reading, by what they are of.
class Index {
 public:
  Index(const ShapingReading& reading, const ShapingPlan& plan) {
    for (const ShapedFlowReading& flow : reading.flows) {
      flows_[{flow.host_index, flow.scope, flow.direction}] = &flow;
    }
    for (const ShapeClassReading& queue : reading.classes) {
      queues_[{queue.direction, queue.id}] = &queue;
    }
    for (const TrafficDirection direction : kBothDirections) {
      for (const ShapeClass& shape : plan.tables.trees[static_cast<size_t>(direction)]) {
        ceils_[{direction, shape.id}] = PayloadRate(shape.ceil);
      }
    }
  }

  const ShapedFlowReading* Flow(const ShapedFlowKey& key) const {
    const auto found = flows_.find({key.host_index, key.scope, key.direction});
    return found == flows_.end() ? nullptr : found->second;
  }
  const ShapeClassReading* Queue(const PlannedFlow& flow) const {
    if (flow.class_id == 0) return nullptr;
    const auto found = queues_.find({flow.key.direction, flow.class_id});
    return found == queues_.end() ? nullptr : found->second;
  }
  units::BitRate Ceil(const PlannedFlow& flow) const {
    const auto found = ceils_.find({flow.key.direction, flow.class_id});
    return found == ceils_.end() ? units::BitRate() : found->second;
  }

 private:
  std::map<std::tuple<uint32_t, ClassNumber, TrafficDirection>, const ShapedFlowReading*> flows_;
  std::map<std::pair<TrafficDirection, ShapeClassId>, const ShapeClassReading*> queues_;
  std::map<std::pair<TrafficDirection, ShapeClassId>, units::BitRate> ceils_;
};

}  // namespace

void ShapingMeter::OnReading(const ShapingReading& reading, const ShapingPlan& plan,
                             const std::vector<GrantInForce>& grants, absl::Time now) {
  if (last_ && now <= *last_) return;
  // A zero interval means that there is nothing to compare with yet.
  const absl::Duration interval = last_ ? now - *last_ : absl::ZeroDuration();
  last_ = now;
  std::vector<Step> steps = Measure(reading, plan, interval);
  MarkFullTeams(steps, grants);
  MarkShadow(steps, plan);
  flows_.clear();
  std::map<ShapedFlowKey, Seen> seen;
  for (Step& step : steps) {
    EstimateDemand(step, now);
    flows_[step.flow->key] = step.use;
    if (auto known = seen_.extract(step.flow->key); !known.empty()) seen.insert(std::move(known));
  }
  seen_ = std::move(seen);  // The flows that have gone are not in it.
  AddToTotals(steps, interval);
  CompareTeams(steps, grants);
}

std::vector<ShapingMeter::Step> ShapingMeter::Measure(const ShapingReading& reading,
                                                      const ShapingPlan& plan,
                                                      absl::Duration interval) {
  const Index index(reading, plan);
  const bool first = interval == absl::ZeroDuration();
  std::vector<Step> steps;
  steps.reserve(plan.flows.size());
  for (const PlannedFlow& flow : plan.flows) {
    Step& step = steps.emplace_back();
    step.flow = &flow;
    step.ceil = index.Ceil(flow);
    Seen& seen = seen_[flow.key];
    const Seen before = seen;
    const ShapedFlowReading* offered = index.Flow(flow.key);
    const ShapeClassReading* queue = index.Queue(flow);
    if (offered != nullptr) seen.flow = *offered;
    if (queue != nullptr) seen.queue = *queue;
    if (first) continue;
    if (offered != nullptr) {
      const ShapedFlowReading& old = before.flow;
      step.use.offered = PayloadRate(PerSecond(Growth(offered->offered, old.offered), interval));
      step.use.connections = PerSecond(Growth(offered->connections, old.connections), interval);
      step.use.refused_connections =
          PerSecond(Growth(offered->refused_connections, old.refused_connections), interval);
    }
    if (flow.class_id == 0) {
      step.use.passed = step.use.offered;
      continue;
    }
    if (queue == nullptr) continue;
    // The totals of another class say nothing about this one's.
    const ShapeClassReading old =
        before.queue.id == queue->id ? before.queue : ShapeClassReading{.id = queue->id};
    step.use.passed = PayloadRate(PerSecond(Growth(queue->sent, old.sent), interval));
    step.dropped_packets = Growth(queue->dropped_packets, old.dropped_packets);
    const bool late =
        step.dropped_packets != 0 || queue->backlog > BytesOf(step.use.passed, kPassing);
    // The two totals are not read at one instant, so a difference alone says nothing.
    if (late) step.use.throttled = step.use.offered - std::min(step.use.offered, step.use.passed);
    const bool full = !step.ceil.is_zero() && !step.use.passed.is_zero() &&
                      step.use.passed >= Times(kFull, step.ceil);
    step.use.held_back = late || full;
  }
  return steps;
}

void ShapingMeter::MarkFullTeams(std::vector<Step>& steps,
                                 const std::vector<GrantInForce>& grants) {
  std::map<TeamKey, units::BitRate> passed;
  for (const Step& step : steps) passed[{step.flow->budget, step.flow->team}] += step.use.passed;
  std::set<TeamKey> full;
  for (const GrantInForce& grant : grants) {
    const auto found = passed.find({grant.budget, grant.team});
    if (found == passed.end() || found->second.is_zero()) continue;
    if (found->second >= Times(kFull, grant.rate)) full.insert(found->first);
  }
  for (Step& step : steps) {
    const TeamKey team(step.flow->budget, step.flow->team);
    // Nothing is held back in Shadow, so what flows want is what they use.
    if (step.flow->class_id == 0 || step.flow->shadow_budget || !full.contains(team)) continue;
    if (step.use.passed >= Times(kSmallPart, passed[team])) step.use.held_back = true;
  }
}

void ShapingMeter::MarkShadow(std::vector<Step>& steps, const ShapingPlan& plan) {
  std::vector<double> left;
  for (const Step& step : steps) {
    const units::BitRate passed = step.use.passed;
    const units::BitRate bound = step.flow->shadow;
    const units::BitRate within = bound.is_zero() ? passed : std::min(passed, bound);
    left.push_back(static_cast<double>(within.count()));
  }
  for (const ShadowBound& bound : plan.shadow_bounds) {
    double sum = 0;
    for (const size_t flow : bound.flows) sum += left[flow];
    const auto rate = static_cast<double>(bound.rate.count());
    if (sum <= rate) continue;
    for (const size_t flow : bound.flows) left[flow] *= rate / sum;
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    FlowUse& use = steps[i].use;
    use.throttled +=
        units::BitRate(static_cast<uint64_t>(static_cast<double>(use.passed.count()) - left[i]));
  }
}

void ShapingMeter::EstimateDemand(Step& step, absl::Time now) {
  FlowUse& use = step.use;
  Seen& seen = seen_[step.flow->key];
  const units::BitRate used = std::max(use.offered, use.passed);
  const units::BitRate wanted = Times(kHeadroom, used);
  std::vector<Sample>& recent = seen.recent;
  recent.erase(
      std::remove_if(recent.begin(), recent.end(),
                     [&](const Sample& sample) { return sample.at <= now - kDemandWindow; }),
      recent.end());
  recent.push_back({now, wanted});
  for (const Sample& sample : recent) use.demand = std::max(use.demand, sample.rate);
  if (use.held_back) {
    use.demand = std::max({use.demand, Times(kGrowth, use.passed), kLeastWanted});
  } else if (seen.held_back && used > seen.used) {
    // The flow has been let go, and TCP takes its time to use that.
    use.demand = std::max(use.demand, wanted + (used - seen.used));
  }
  seen.used = used;
  seen.held_back = use.held_back;
  if (!step.flow->limit.is_zero()) use.demand = std::min(use.demand, step.flow->limit);
}

void ShapingMeter::AddToTotals(const std::vector<Step>& steps, absl::Duration interval) {
  std::set<std::pair<std::string, TrafficDirection>> held_back;
  for (const Step& step : steps) {
    const std::pair key(step.flow->budget, step.flow->key.direction);
    ShapingTotals& totals = totals_[key];
    totals.dropped_packets += step.dropped_packets;
    totals.passed += BytesOf(step.use.passed, interval);
    totals.throttled += BytesOf(step.use.throttled, interval);
    if (step.use.held_back || !step.use.throttled.is_zero()) held_back.insert(key);
  }
  for (const auto& key : held_back) totals_[key].throttled_for += interval;
}

void ShapingMeter::CompareTeams(const std::vector<Step>& steps,
                                const std::vector<GrantInForce>& grants) {
  std::map<TeamKey, units::BitRate> demand;
  std::set<TeamKey> affected;
  for (const Step& step : steps) {
    if (step.flow->budget.empty()) continue;
    const TeamKey team(step.flow->budget, step.flow->team);
    demand[team] += step.use.demand;
    if (step.use.held_back || !step.use.throttled.is_zero()) affected.insert(team);
  }
  // Whoever is held back by limits alone has no use for a larger grant.
  for (const GrantInForce& grant : grants) {
    const TeamKey team(grant.budget, grant.team);
    if (demand[team] <= grant.rate) affected.erase(team);
  }
  newly_held_back_ =
      !std::includes(held_back_.begin(), held_back_.end(), affected.begin(), affected.end());
  held_back_ = std::move(affected);
}

std::map<ShapedFlowKey, units::BitRate> ShapingMeter::Demand() const {
  std::map<ShapedFlowKey, units::BitRate> demand;
  for (const auto& [key, use] : flows_) {
    if (!use.demand.is_zero()) demand[key] = use.demand;
  }
  return demand;
}

std::vector<node_api::BudgetUse> ShapingMeter::Uses(const ShapingPlan& plan,
                                                    const std::vector<GrantInForce>& grants) const {
  std::map<TeamKey, node_api::BudgetUse> sums;
  const auto use_of = [&](ShapedFlowKey key, TrafficDirection direction) {
    key.direction = direction;
    const auto found = flows_.find(key);
    return found == flows_.end() ? FlowUse{} : found->second;
  };
  for (const PlannedFlow& flow : plan.flows) {
    if (flow.budget.empty()) continue;
    node_api::BudgetUse& sum = sums[{flow.budget, flow.team}];
    const FlowUse use = use_of(flow.key, flow.key.direction);
    sum.usage += use.passed;
    sum.demand += use.demand;
    sum.throttled += use.throttled;
    // Pods open connections at egress, whatever the direction of the budget.
    const FlowUse opening = use_of(flow.key, TrafficDirection::kEgress);
    sum.connections += static_cast<uint32_t>(opening.connections);
    sum.refused_connections += static_cast<uint32_t>(opening.refused_connections);
  }
  std::vector<node_api::BudgetUse> uses;
  for (const GrantInForce& grant : grants) {
    node_api::BudgetUse& use = uses.emplace_back(sums[{grant.budget, grant.team}]);
    use.budget = grant.budget;
    use.team = grant.team;
    use.held = grant.held;
    use.held_connections = grant.connections;
  }
  return uses;
}

}  // namespace spoke::netagent
