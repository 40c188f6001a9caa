#include "netagent/shaping/testing/fake_shaper.h"

#include <utility>

#include "lib/base/status.h"
#include "netagent/shaping/class_changes.h"
#include "netagent/shaping/shaping_check.h"

namespace spoke::netagent {

absl::Status FakeShaper::Apply(const ShapingTables& tables) {
  RETURN_IF_ERROR(CheckShapingTables(tables));
  RETURN_IF_ERROR(ScopeBlocks(tables).status());
  RETURN_IF_ERROR(broken_);
  for (const TrafficDirection direction : kBothDirections) {
    const auto i = static_cast<size_t>(direction);
    // A class that is made again begins to count again, as in the kernel.
    const ClassChanges changes = PlanClassChanges(tables_.trees.at(i), tables.trees.at(i));
    for (const ShapeClassId id : changes.removed) classes_.erase({direction, id});
    for (const ShapeClass& one : tables.trees.at(i)) {
      classes_.try_emplace({direction, one.id},
                           ShapeClassReading{.direction = direction, .id = one.id});
    }
  }
  std::map<FlowKey, ShapedFlowReading> flows;
  for (const ShapedFlow& flow : tables.flows) {
    const FlowKey key = KeyOf(flow.host_index, flow.scope, flow.direction);
    const auto before = flows_.find(key);
    flows[key] = before != flows_.end() ? before->second
                                        : ShapedFlowReading{.host_index = flow.host_index,
                                                            .scope = flow.scope,
                                                            .direction = flow.direction};
  }
  flows_ = std::move(flows);
  tables_ = tables;
  ++applied_;
  return absl::OkStatus();
}

absl::StatusOr<ShapingReading> FakeShaper::Read() {
  RETURN_IF_ERROR(broken_);
  ShapingReading reading;
  for (const auto& [key, one] : classes_) reading.classes.push_back(one);
  for (const auto& [key, one] : flows_) reading.flows.push_back(one);
  return reading;
}

absl::StatusOr<size_t> FakeShaper::Repair() {
  RETURN_IF_ERROR(broken_);
  return std::exchange(disturbed_, 0);
}

absl::Status FakeShaper::Remove() {
  RETURN_IF_ERROR(broken_);
  tables_ = {};
  classes_.clear();
  flows_.clear();
  disturbed_ = 0;
  return absl::OkStatus();
}

void FakeShaper::Count(const ShapeClassReading& reading) {
  classes_.at({reading.direction, reading.id}) = reading;
}

void FakeShaper::Count(const ShapedFlowReading& reading) {
  flows_.at(KeyOf(reading.host_index, reading.scope, reading.direction)) = reading;
}

}  // namespace spoke::netagent
