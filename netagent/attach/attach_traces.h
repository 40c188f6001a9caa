// How the last ADDs of this node went, step by step, for the operator who asks why one was slow or
// failed. Pure: no I/O, no clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/time/time.h"
#include "lib/ip/address.h"
#include "netagent/attach/assignments.h"

namespace spoke::netagent {

struct AttachStep {
  std::string_view name;  // A literal.
  int64_t begin_us = 0;   // After the beginning of the first step.
  int64_t took_us = 0;

  bool operator==(const AttachStep&) const = default;
};
using AttachSteps = absl::InlinedVector<AttachStep, 8>;

// Takes the times of steps that follow each other without a gap.
class StepTimes {
 public:
  explicit StepTimes(absl::Time begin) : begin_(begin), last_(begin) {}

  // The step `name` (a literal) ended at `at` and the next begins. A clock that was set back makes
  // a step that took nothing.
  void Ended(std::string_view name, absl::Time at);

  const AttachSteps& steps() const { return steps_; }
  absl::Time begin() const { return begin_; }
  int64_t total_us() const;

 private:
  absl::Time begin_;
  absl::Time last_;
  AttachSteps steps_;
};

struct AttachTrace {
  AttachmentKey key;
  PodReference pod;
  std::string trace_id;
  absl::Time since;
  std::string error = {};  // Empty: it succeeded.
  AttachSteps steps = {};
  std::vector<ip::Address> addresses = {};

  bool operator==(const AttachTrace&) const = default;
};

// Which of them; an empty field stands for any.
struct AttachTraceFilter {
  std::string pod_namespace = {};
  std::string pod_name = {};
  std::string container_id = {};

  bool operator==(const AttachTraceFilter&) const = default;
};

bool Matches(const AttachTrace& trace, const AttachTraceFilter& filter);

// The trace id of a W3C trace context "00-<32 hex digits>-<16 hex digits>-<2 hex digits>"; empty
// when `trace_parent` is none, or an id of zeros, which stands for none.
std::string_view TraceIdOf(std::string_view trace_parent);

// Not thread-safe.
class AttachTraces {
 public:
  static constexpr size_t kMaxTraces = 512;

  // Beyond kMaxTraces the oldest is forgotten.
  void Add(AttachTrace trace);

  // The newest first.
  std::vector<AttachTrace> Find(const AttachTraceFilter& filter) const;

 private:
  std::vector<AttachTrace> ring_;
  size_t next_ = 0;  // Where the next one goes.
};

}  // namespace spoke::netagent
