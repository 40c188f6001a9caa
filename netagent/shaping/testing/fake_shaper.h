// A Shaper in memory.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "netagent/shaping/shaper.h"

namespace spoke::netagent {

// The fake is not thread-safe. It passes the same contract suite as the real one
// (shaper_contract.h). What the kernel would keep without an agent outlives the agent here if the
// same object is used again.
class FakeShaper final : public Shaper {
 public:
  absl::Status Apply(const ShapingTables& tables) override;
  absl::StatusOr<ShapingReading> Read() override;
  absl::StatusOr<size_t> Repair() override;
  absl::Status Remove() override;

  // Return and set, for tests, what is in force, what has been counted of a class or flow of it,
  // and how it fails from now on (OK: no more). A class or a flow that goes takes its counts along.
  const ShapingTables& tables() const { return tables_; }
  size_t applied() const { return applied_; }  // Returns how many times Apply() was called.
  void Count(const ShapeClassReading& reading);
  void Count(const ShapedFlowReading& reading);
  void Break(absl::Status status) { broken_ = std::move(status); }
  // Lets somebody change so many things, none of which Read() would show.
  void Disturb(size_t things) { disturbed_ = things; }

 private:
  using FlowKey = std::tuple<uint32_t, ClassNumber, TrafficDirection>;

  static FlowKey KeyOf(uint32_t host_index, ClassNumber scope, TrafficDirection direction) {
    return {host_index, scope, direction};
  }

  ShapingTables tables_;
  std::map<std::pair<TrafficDirection, ShapeClassId>, ShapeClassReading> classes_;
  std::map<FlowKey, ShapedFlowReading> flows_;
  absl::Status broken_;
  size_t applied_ = 0;
  size_t disturbed_ = 0;
};

}  // namespace spoke::netagent
