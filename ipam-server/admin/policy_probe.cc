#include "ipam-server/admin/policy_probe.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <variant>

#include "fmt/core.h"
#include "ipam-server/policy/objects/selector.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

// The first address of a block that a machine may have.
ip::Address FirstOf(const ip::Prefix& block) {
  return block.size() > 2 ? ip::Advance(block.base(), 1) : block.base();
}

std::vector<node_api::ProbeTarget> FirstAddresses(const ObjectSet& objects,
                                                  std::string_view share) {
  std::vector<node_api::ProbeTarget> targets;
  for (const auto& [key, object] : objects.objects()) {
    for (const Claim& claim : object->spec->Claims()) {
      const auto* block = std::get_if<ip::Prefix>(&claim.what);
      if (block == nullptr || claim.space != kNetworkSpace || claim.share != share) continue;
      const node_api::ProbeTarget target{.address = FirstOf(*block), .port = 0};
      if (std::find(targets.begin(), targets.end(), target) == targets.end()) {
        targets.push_back(target);
      }
    }
  }
  return targets;
}

absl::StatusOr<std::vector<node_api::ProbeTarget>> TargetsOf(
    const google::protobuf::RepeatedPtrField<std::string>& given, const ObjectSet& objects,
    std::string_view share) {
  if (given.empty()) return FirstAddresses(objects, share);
  std::vector<node_api::ProbeTarget> targets;
  for (const std::string& text : given) {
    ASSIGN_OR_RETURN(targets.emplace_back(), ParseTarget(text));
  }
  return targets;
}

std::string TextOf(const node_api::ProbeTarget& target) {
  const std::string address = target.address.ToString();
  if (target.port == 0) return address;
  return target.address.is_v4() ? fmt::format("{}:{}", address, target.port)
                                : fmt::format("[{}]:{}", address, target.port);
}

std::string_view NameOf(node_api::ProbeOutcome outcome) {
  switch (outcome) {
    case node_api::ProbeOutcome::kNotTried:
      return "not tried";
    case node_api::ProbeOutcome::kReached:
      return "reached";
    case node_api::ProbeOutcome::kRefused:
      return "refused";
    case node_api::ProbeOutcome::kUnreachable:
      return "unreachable";
    case node_api::ProbeOutcome::kTimedOut:
      return "timed out";
  }
  return "not tried";
}

bool HasNetwork(const ObjectSet& objects) {
  return std::any_of(objects.objects().begin(), objects.objects().end(),
                     [](const auto& entry) { return entry.first.kind == "ClusterNetwork"; });
}

}  // namespace

absl::StatusOr<node_api::ProbeTarget> ParseTarget(const std::string& text) {
  node_api::ProbeTarget target;
  // A bare address first: those of IPv6 are full of colons.
  if (const auto address = ip::Address::Parse(text); address.ok()) {
    target.address = *address;
    return target;
  }
  const size_t colon = text.rfind(':');
  std::string_view host = std::string_view(text).substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  const auto address = ip::Address::Parse(host);
  const char* end = text.data() + text.size();
  const char* begin = colon == std::string::npos ? end : text.data() + colon + 1;
  const auto [stop, error] = std::from_chars(begin, end, target.port);
  if (!address.ok() || address->is_v4() == bracketed || error != std::errc() || stop != end ||
      target.port == 0) {
    return absl::InvalidArgumentError(fmt::format(
        "\"{}\" is no target: write ADDRESS, ADDRESS:PORT or [ADDRESS]:PORT", text.substr(0, 64)));
  }
  target.address = *address;
  return target;
}

absl::StatusOr<ProbePlan> PlanProbes(const ObjectSet& objects,
                                     const v1::VerifyPolicyRequest& request) {
  // What is named is tried whatever policy says; only a choice of targets takes a policy.
  const bool named = !request.hub_targets().empty() || !request.spoke_targets().empty();
  if (!named && !HasNetwork(objects)) {
    return absl::FailedPreconditionError(
        "no ClusterNetwork is applied, so nothing is promised: name targets, or see conf/policies");
  }
  ProbePlan plan{.targets = {}, .timeout = kProbeTimeout};
  if (request.timeout_ms() != 0) plan.timeout = absl::Milliseconds(request.timeout_ms());
  if (plan.timeout > node_api::kMaxProbeTimeout) {
    return absl::InvalidArgumentError(fmt::format(
        "at most {} may be waited for a target", absl::FormatDuration(node_api::kMaxProbeTimeout)));
  }
  ASSIGN_OR_RETURN(plan.targets, TargetsOf(request.hub_targets(), objects, "hub"));
  plan.hubs = plan.targets.size();
  ASSIGN_OR_RETURN(const std::vector<node_api::ProbeTarget> spokes,
                   TargetsOf(request.spoke_targets(), objects, kDroppedShare));
  plan.targets.insert(plan.targets.end(), spokes.begin(), spokes.end());
  if (plan.targets.empty()) {
    return absl::FailedPreconditionError(
        "the ClusterNetworks have neither hub nor peerSpoke blocks: name targets");
  }
  if (plan.targets.size() > node_api::kMaxProbeTargets) {
    return absl::InvalidArgumentError(
        fmt::format("{} targets, more than the {} that an agent takes: name some of them",
                    plan.targets.size(), node_api::kMaxProbeTargets));
  }
  return plan;
}

std::vector<std::string> ChooseNodes(const std::vector<std::string>& connected) {
  if (connected.size() <= kNodesByDefault) return connected;
  std::vector<std::string> chosen;
  for (size_t i = 0; i < kNodesByDefault; ++i) {
    chosen.push_back(connected[i * (connected.size() - 1) / (kNodesByDefault - 1)]);
  }
  return chosen;
}

v1::VerifyPolicyResponse DescribeProbes(const std::string& node, const ProbePlan& plan,
                                        const absl::StatusOr<node_api::ProbeAnswer>& answer) {
  v1::VerifyPolicyResponse response;
  response.set_node(node);
  if (!answer.ok() || !answer->error.empty()) {
    response.set_error(answer.ok() ? answer->error : std::string(base::MessageOf(answer.status())));
    return response;
  }
  for (size_t i = 0; i < plan.targets.size(); ++i) {
    const bool is_hub = i < plan.hubs;
    const auto result =
        std::find_if(answer->results.begin(), answer->results.end(),
                     [&](const node_api::ProbeResult& r) { return r.target == plan.targets[i]; });
    v1::PolicyProbe& probe = *response.add_probes();
    probe.set_target(TextOf(plan.targets[i]));
    probe.set_traffic_class(is_hub ? "hub" : "peer-spoke");
    probe.set_expected(is_hub);
    const bool tried = result != answer->results.end();
    const node_api::ProbeOutcome outcome =
        tried ? result->outcome : node_api::ProbeOutcome::kNotTried;
    probe.set_outcome(std::string(NameOf(outcome)));
    probe.set_reached(outcome == node_api::ProbeOutcome::kReached ||
                      outcome == node_api::ProbeOutcome::kRefused);
    if (!tried) continue;
    probe.set_took_us(static_cast<uint32_t>(absl::ToInt64Microseconds(result->took)));
    probe.set_detail(result->detail);
  }
  return response;
}

}  // namespace spoke::ipam
