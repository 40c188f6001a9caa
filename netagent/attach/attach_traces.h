// How the last ADDs of this node went, step by step, for the operator who asks why one was slow or
// failed. Pure: no I/O, no clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "lib/node_api/attach_traces.h"

namespace spoke::netagent {

// Takes the times of steps that follow each other without a gap.
class StepTimes {
 public:
  explicit StepTimes(absl::Time begin) : begin_(begin), last_(begin) {}

  // The step `name` ended at `at` and the next begins. A clock that was set back makes
  // a step that took nothing.
  void Ended(std::string_view name, absl::Time at);

  const std::vector<node_api::AttachStep>& steps() const { return steps_; }
  absl::Time begin() const { return begin_; }
  int64_t total_us() const;

 private:
  absl::Time begin_;
  absl::Time last_;
  std::vector<node_api::AttachStep> steps_;
};

// Whether `request` asks for `trace`.
bool Matches(const node_api::AttachTrace& trace, const node_api::AttachTracesRequest& request);

// The trace id of a W3C trace context "00-<32 hex digits>-<16 hex digits>-<2 hex digits>"; empty
// when `trace_parent` is none, or an id of zeros, which stands for none.
std::string_view TraceIdOf(std::string_view trace_parent);

// Not thread-safe.
class AttachTraces {
 public:
  static constexpr size_t kMaxTraces = 512;

  // Adds a trace; beyond kMaxTraces the oldest is forgotten.
  void Add(node_api::AttachTrace trace);

  // Returns those that `request` asks for, the newest first.
  std::vector<node_api::AttachTrace> Find(const node_api::AttachTracesRequest& request) const;

 private:
  std::vector<node_api::AttachTrace> ring_;
  size_t next_ = 0;  // The place of the next trace.
};

}  // namespace spoke::netagent
