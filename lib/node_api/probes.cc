#include "lib/node_api/probes.h"

#include <algorithm>
#include <limits>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/base/utf8.h"
#include "proto/spoke/v1/node.pb.h"

namespace spoke::node_api {
namespace {

using base::CutText;
using WireResult = v1::ProbeResults::Result;

WireResult::Outcome ToWire(ProbeOutcome outcome) {
  switch (outcome) {
    case ProbeOutcome::kNotTried:
      return WireResult::NOT_TRIED;
    case ProbeOutcome::kReached:
      return WireResult::REACHED;
    case ProbeOutcome::kRefused:
      return WireResult::REFUSED;
    case ProbeOutcome::kUnreachable:
      return WireResult::UNREACHABLE;
    case ProbeOutcome::kTimedOut:
      return WireResult::TIMED_OUT;
  }
  return WireResult::OUTCOME_UNSPECIFIED;
}

ProbeOutcome FromWire(WireResult::Outcome outcome) {
  switch (outcome) {
    case WireResult::REACHED:
      return ProbeOutcome::kReached;
    case WireResult::REFUSED:
      return ProbeOutcome::kRefused;
    case WireResult::UNREACHABLE:
      return ProbeOutcome::kUnreachable;
    case WireResult::TIMED_OUT:
      return ProbeOutcome::kTimedOut;
    default:  // It is of a newer agent.
      return ProbeOutcome::kNotTried;
  }
}

absl::StatusOr<ProbeTarget> TargetFromWire(const std::string& address, uint32_t port) {
  ProbeTarget target;
  ASSIGN_OR_RETURN(target.address, ip::Address::Parse(address));
  if (port > std::numeric_limits<uint16_t>::max()) {
    return absl::InvalidArgumentError(fmt::format("port {} of a probe", port));
  }
  target.port = static_cast<uint16_t>(port);
  return target;
}

}  // namespace

void ToWire(const ProbeRequest& in, v1::ProbeRequest& out) {
  out.set_id(in.id);
  out.set_timeout_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(in.timeout)));
  for (const ProbeTarget& target : in.targets) {
    v1::ProbeRequest::Target& to = *out.add_targets();
    to.set_address(target.address.ToString());
    to.set_port(target.port);
    to.set_bytes(target.bytes);
  }
}

absl::StatusOr<ProbeRequest> FromWire(const v1::ProbeRequest& in) {
  if (in.targets_size() > kMaxProbeTargets) {
    return absl::InvalidArgumentError(
        fmt::format("{} targets to probe, more than {}", in.targets_size(), kMaxProbeTargets));
  }
  ProbeRequest request{.id = in.id(),
                       .timeout = std::min(absl::Milliseconds(in.timeout_ms()), kMaxProbeTimeout)};
  for (const v1::ProbeRequest::Target& target : in.targets()) {
    ASSIGN_OR_RETURN(ProbeTarget& to = request.targets.emplace_back(),
                     TargetFromWire(target.address(), target.port()));
    if (target.bytes() > kMaxProbeBytes) {
      return absl::InvalidArgumentError(fmt::format("a probe of {} bytes", target.bytes()));
    }
    to.bytes = static_cast<uint16_t>(target.bytes());
  }
  return request;
}

void ToWire(const ProbeAnswer& in, v1::ProbeResults& out) {
  out.set_id(in.id);
  out.set_error(in.error);
  for (const ProbeResult& result : in.results) {
    WireResult& to = *out.add_results();
    to.set_address(result.target.address.ToString());
    to.set_port(result.target.port);
    to.set_outcome(ToWire(result.outcome));
    to.set_took_us(static_cast<uint32_t>(absl::ToInt64Microseconds(result.took)));
    to.set_detail(result.detail);
  }
}

absl::StatusOr<ProbeAnswer> FromWire(const v1::ProbeResults& in) {
  ProbeAnswer answer{.id = in.id(), .error = CutText(in.error(), kMaxErrorBytes)};
  for (int i = 0; i < std::min(in.results_size(), kMaxProbeTargets); ++i) {
    const WireResult& result = in.results(i);
    ASSIGN_OR_RETURN(const ProbeTarget target, TargetFromWire(result.address(), result.port()));
    answer.results.push_back({.target = target,
                              .outcome = FromWire(result.outcome()),
                              .took = absl::Microseconds(result.took_us()),
                              .detail = CutText(result.detail(), kMaxErrorBytes)});
  }
  return answer;
}

}  // namespace spoke::node_api
