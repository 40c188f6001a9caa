#include "netagent/attach/attach_traces.h"

#include <algorithm>
#include <utility>

namespace spoke::netagent {
namespace {

int64_t MicrosBetween(absl::Time from, absl::Time to) {
  return std::max<int64_t>(absl::ToInt64Microseconds(to - from), 0);
}

bool IsLowerHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace

bool Matches(const AttachTrace& trace, const AttachTraceFilter& filter) {
  const auto agrees = [](const std::string& wanted, const std::string& is) {
    return wanted.empty() || wanted == is;
  };
  return agrees(filter.pod_namespace, trace.pod.pod_namespace) &&
         agrees(filter.pod_name, trace.pod.name) &&
         agrees(filter.container_id, trace.key.container_id);
}

void StepTimes::Ended(std::string_view name, absl::Time at) {
  steps_.push_back({name, MicrosBetween(begin_, last_), MicrosBetween(last_, at)});
  last_ = std::max(last_, at);
}

int64_t StepTimes::total_us() const { return MicrosBetween(begin_, last_); }

std::string_view TraceIdOf(std::string_view trace_parent) {
  constexpr size_t kLength = 55;
  if (trace_parent.size() < kLength || trace_parent[2] != '-' || trace_parent[35] != '-' ||
      trace_parent[52] != '-') {
    return {};
  }
  // A later version may be longer: its first four fields are the same (W3C Trace Context, 3.2.4).
  if (trace_parent.substr(0, 2) == "ff" || !IsLowerHex(trace_parent.substr(0, 2))) return {};
  const std::string_view id = trace_parent.substr(3, 32);
  if (!IsLowerHex(id) || id.find_first_not_of('0') == std::string_view::npos) return {};
  return id;
}

void AttachTraces::Add(AttachTrace trace) {
  if (ring_.size() < kMaxTraces) {
    ring_.push_back(std::move(trace));
    return;
  }
  ring_[next_] = std::move(trace);
  next_ = (next_ + 1) % kMaxTraces;
}

std::vector<AttachTrace> AttachTraces::Find(const AttachTraceFilter& filter) const {
  std::vector<AttachTrace> found;
  for (size_t i = ring_.size(); i > 0; --i) {
    const AttachTrace& trace = ring_[(next_ + i - 1) % ring_.size()];
    if (Matches(trace, filter)) found.push_back(trace);
  }
  return found;
}

}  // namespace spoke::netagent
