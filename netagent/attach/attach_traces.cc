#include "netagent/attach/attach_traces.h"

#include <algorithm>
#include <utility>

namespace spoke::netagent {
namespace {

absl::Duration Between(absl::Time from, absl::Time to) {
  return std::max(to - from, absl::ZeroDuration());
}

bool IsLowerHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace

bool Matches(const node_api::AttachTrace& trace, const node_api::AttachTracesRequest& request) {
  const auto agrees = [](const std::string& wanted, const std::string& is) {
    return wanted.empty() || wanted == is;
  };
  return agrees(request.pod_namespace, trace.pod_namespace) &&
         agrees(request.pod_name, trace.pod_name) &&
         agrees(request.container_id, trace.container_id);
}

void StepTimes::Ended(std::string_view name, absl::Time at) {
  steps_.push_back({std::string(name), Between(begin_, last_), Between(last_, at)});
  last_ = std::max(last_, at);
}

int64_t StepTimes::total_us() const { return absl::ToInt64Microseconds(Between(begin_, last_)); }

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

void AttachTraces::Add(node_api::AttachTrace trace) {
  if (ring_.size() < kMaxTraces) {
    ring_.push_back(std::move(trace));
    return;
  }
  ring_[next_] = std::move(trace);
  next_ = (next_ + 1) % kMaxTraces;
}

std::vector<node_api::AttachTrace> AttachTraces::Find(
    const node_api::AttachTracesRequest& request) const {
  std::vector<node_api::AttachTrace> found;
  for (size_t i = ring_.size(); i > 0; --i) {
    const node_api::AttachTrace& trace = ring_[(next_ + i - 1) % ring_.size()];
    if (Matches(trace, request)) found.push_back(trace);
  }
  return found;
}

}  // namespace spoke::netagent
