#include "lib/node_api/attach_traces.h"

#include <algorithm>
#include <limits>

#include "lib/base/status.h"
#include "lib/base/utf8.h"
#include "proto/spoke/v1/node.pb.h"

namespace spoke::node_api {
namespace {

using base::CutText;

absl::Duration StepTime(uint64_t us) {
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  return std::min(absl::Microseconds(static_cast<int64_t>(std::min(us, kMost))), kMaxStepTime);
}

uint64_t MicrosOf(absl::Duration duration) {
  return static_cast<uint64_t>(std::max<int64_t>(absl::ToInt64Microseconds(duration), 0));
}

void ToWire(const AttachTrace& in, v1::AttachTrace& out) {
  out.set_container_id(in.container_id);
  out.set_ifname(in.ifname);
  out.set_pod_namespace(in.pod_namespace);
  out.set_pod_name(in.pod_name);
  out.set_trace_id(in.trace_id);
  out.set_since_unix_ms(absl::ToUnixMillis(in.since));
  out.set_error(in.error);
  for (const AttachStep& step : in.steps) {
    v1::AttachTrace::Step& to = *out.add_steps();
    to.set_name(step.name);
    to.set_begin_us(MicrosOf(step.begin));
    to.set_took_us(MicrosOf(step.took));
  }
  for (const ip::Address& address : in.addresses) out.add_addresses(address.ToBytes());
}

absl::StatusOr<AttachTrace> FromWire(const v1::AttachTrace& in) {
  AttachTrace trace{.container_id = CutText(in.container_id(), kMaxIdBytes),
                    .ifname = CutText(in.ifname(), kMaxNameBytes),
                    .pod_namespace = CutText(in.pod_namespace(), kMaxNameBytes),
                    .pod_name = CutText(in.pod_name(), kMaxNameBytes),
                    .trace_id = CutText(in.trace_id(), kMaxNameBytes),
                    .since = absl::FromUnixMillis(in.since_unix_ms()),
                    .error = CutText(in.error(), kMaxErrorBytes)};
  for (int i = 0; i < std::min(in.steps_size(), kMaxTraceSteps); ++i) {
    const v1::AttachTrace::Step& step = in.steps(i);
    trace.steps.push_back({.name = CutText(step.name(), kMaxNameBytes),
                           .begin = StepTime(step.begin_us()),
                           .took = StepTime(step.took_us())});
  }
  for (int i = 0; i < std::min(in.addresses_size(), kMaxTraceAddresses); ++i) {
    ASSIGN_OR_RETURN(trace.addresses.emplace_back(), ip::Address::FromBytes(in.addresses(i)));
  }
  return trace;
}

}  // namespace

void ToWire(const AttachTracesRequest& in, v1::AttachTracesRequest& out) {
  out.set_id(in.id);
  out.set_pod_namespace(in.pod_namespace);
  out.set_pod_name(in.pod_name);
  out.set_container_id(in.container_id);
}

AttachTracesRequest FromWire(const v1::AttachTracesRequest& in) {
  return {.id = in.id(),
          .pod_namespace = in.pod_namespace(),
          .pod_name = in.pod_name(),
          .container_id = in.container_id()};
}

void ToWire(const AttachTracesAnswer& in, v1::AttachTraces& out) {
  out.set_id(in.id);
  for (const AttachTrace& trace : in.traces) ToWire(trace, *out.add_traces());
}

absl::StatusOr<AttachTracesAnswer> FromWire(const v1::AttachTraces& in) {
  AttachTracesAnswer answer{.id = in.id()};
  for (int i = 0; i < std::min(in.traces_size(), kMaxTraces); ++i) {
    ASSIGN_OR_RETURN(answer.traces.emplace_back(), FromWire(in.traces(i)));
  }
  return answer;
}

}  // namespace spoke::node_api
