#include "netagent/session/server_wire.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "fmt/core.h"
#include "lib/base/cut_text.h"
#include "lib/base/status.h"
#include "lib/ip/prefix.h"
#include "lib/policy/wire.h"

namespace spoke::netagent {
namespace {

// Of what ends up in an error that a person reads, or in a log line.
constexpr size_t kMaxReasonBytes = 512;

// The wire has one entry an address, the agent one assignment of one or two.
template <typename AddAssignment>
void ToWire(const Assignment& assignment, const AddAssignment& add) {
  for (const ip::Address& address : assignment.addresses) {
    v1::Assignment& out = *add();
    out.set_address(address.ToBytes());
    out.set_container_id(assignment.key.container_id);
    out.set_ifname(assignment.key.ifname);
    out.set_pod_namespace(assignment.pod.pod_namespace);
    out.set_pod_name(assignment.pod.name);
    out.set_pod_uid(assignment.pod.uid);
    out.set_generation(assignment.generation);
    out.set_since_unix_ms(absl::ToUnixMillis(assignment.since));
  }
}

absl::StatusOr<ip::Prefix> BlockOf(const v1::IpConfiguration& in) {
  ASSIGN_OR_RETURN(const ip::Address base, ip::Address::FromBytes(in.base()));
  if (in.prefix_length() > 128) {
    return absl::InvalidArgumentError(fmt::format("prefix length {}", in.prefix_length()));
  }
  return ip::Prefix::Of(base, static_cast<int>(in.prefix_length()));
}

// Adds the block's addresses to `total`, and refuses more of them than a node can have.
absl::Status CountBlock(const ip::Prefix& block, uint64_t& total) {
  if (block.size() > kMaxAddresses || (total += block.size()) > kMaxAddresses) {
    return absl::InvalidArgumentError(
        fmt::format("more than {} addresses for one node", kMaxAddresses));
  }
  return absl::OkStatus();
}

void ToWire(const ip::Prefix& block, v1::IpConfiguration& out) {
  out.set_base(block.base().ToBytes());
  out.set_prefix_length(static_cast<uint32_t>(block.length()));
}

v1::AssignmentReport ReportToWire(const NumberedReport& report) {
  v1::AssignmentReport out;
  out.set_sequence(report.sequence);
  for (const Assignment& assignment : report.report.in_use) {
    ToWire(assignment, [&] { return out.add_in_use(); });
  }
  for (const Assignment& assignment : report.report.released) {
    for (const ip::Address& address : assignment.addresses) {
      v1::Release& release = *out.add_released();
      release.set_address(address.ToBytes());
      release.set_generation(assignment.generation);
    }
  }
  for (const ip::Address& address : report.report.cooled) out.add_cooled(address.ToBytes());
  return out;
}

v1::AgentMessage MessageOf(const NumberedReport& report) {
  v1::AgentMessage message;
  *message.mutable_report() = ReportToWire(report);
  return message;
}

v1::AgentMessage MessageOf(const DesiredAck& ack) {
  v1::AgentMessage message;
  message.mutable_ack()->set_version(ack.version);
  return message;
}

void CountToWire(const CutCount& count, v1::CutCount& out) {
  out.set_connections(count.connections);
  out.set_cut(count.cut());
}

v1::AgentMessage MessageOf(const PolicyAck& ack) {
  v1::AgentMessage message;
  message.mutable_policy_ack()->set_version(ack.version);
  message.mutable_policy_ack()->set_error(ack.error);
  if (ack.cut) CountToWire(*ack.cut, *message.mutable_policy_ack()->mutable_cut());
  message.mutable_policy_ack()->set_held(ack.held);
  return message;
}

v1::AgentMessage MessageOf(const PolicyTrialAnswer& answer) {
  v1::AgentMessage message;
  v1::PolicyTrialResult& out = *message.mutable_policy_trial_result();
  out.set_id(answer.id);
  CountToWire(answer.cut, *out.mutable_cut());
  out.set_error(answer.error);
  return message;
}

v1::AgentMessage MessageOf(const ReclaimAnswer& answer) {
  v1::AgentMessage message;
  v1::ReclaimAnswer& out = *message.mutable_reclaim_answer();
  out.set_id(answer.id);
  for (const ip::Prefix& block : answer.agreed) ToWire(block, *out.add_agreed());
  for (const ip::Prefix& block : answer.denied) ToWire(block, *out.add_denied());
  return message;
}

v1::AgentMessage MessageOf(const Inventory& inventory) {
  v1::AgentMessage message;
  v1::Inventory& out = *message.mutable_inventory();
  out.set_id(inventory.id);
  for (const ip::Address& address : inventory.held) out.add_held(address.ToBytes());
  for (const Assignment& assignment : inventory.in_use) {
    // The audit compares keys and generations; the pods would double the message.
    Assignment lean = assignment;
    lean.pod = {};
    ToWire(lean, [&] { return out.add_in_use(); });
  }
  return message;
}

v1::AgentMessage MessageOf(const ConflictNoted& conflict) {
  v1::AgentMessage message;
  message.mutable_conflict()->set_address(conflict.address.ToBytes());
  if (conflict.other_mac) {
    message.mutable_conflict()->set_other_mac(conflict.other_mac->ToString());
  }
  return message;
}

v1::AgentMessage MessageOf(const Demand& demand) {
  v1::AgentMessage message;
  v1::Demand& out = *message.mutable_demand();
  for (const auto& [pod_namespace, pods] : demand.waiting) {
    v1::Demand::Waiting& waiting = *out.add_waiting();
    waiting.set_pod_namespace(pod_namespace);
    waiting.set_pods(pods);
  }
  return message;
}

v1::AgentMessage MessageOf(const AttachTracesAnswer& answer) {
  v1::AgentMessage message;
  v1::AttachTraces& out = *message.mutable_attach_traces();
  out.set_id(answer.id);
  for (const AttachTrace& trace : answer.traces) {
    v1::AttachTrace& to = *out.add_traces();
    to.set_container_id(trace.key.container_id);
    to.set_ifname(trace.key.ifname);
    to.set_pod_namespace(trace.pod.pod_namespace);
    to.set_pod_name(trace.pod.name);
    to.set_trace_id(trace.trace_id);
    to.set_since_unix_ms(absl::ToUnixMillis(trace.since));
    to.set_error(trace.error);
    for (const AttachStep& step : trace.steps) {
      v1::AttachTrace::Step& said = *to.add_steps();
      said.set_name(step.name.data(), step.name.size());
      said.set_begin_us(static_cast<uint64_t>(step.begin_us));
      said.set_took_us(static_cast<uint64_t>(step.took_us));
    }
    for (const ip::Address& address : trace.addresses) to.add_addresses(address.ToBytes());
  }
  return message;
}

template <typename To>
void VolumesToWire(const VolumeByClass& volumes, To& to) {
  for (const auto& [traffic_class, volume] : volumes) {
    v1::TrafficReport::Volume& out = *to.add_volumes();
    out.set_traffic_class(traffic_class);
    out.set_sent(volume.sent);
    out.set_received(volume.received);
  }
}

v1::AgentMessage MessageOf(const TrafficReport& report) {
  v1::AgentMessage message;
  v1::TrafficReport& out = *message.mutable_traffic();
  out.set_epoch_unix_ms(absl::ToUnixMillis(report.epoch));
  for (const auto& [name, volumes] : report.namespaces) {
    v1::TrafficReport::Namespace& entry = *out.add_namespaces();
    entry.set_name(name);
    VolumesToWire(volumes, entry);
  }
  for (const PodTotals& pod : report.pods) {
    v1::TrafficReport::Pod& entry = *out.add_pods();
    entry.set_pod_namespace(pod.pod_namespace);
    entry.set_pod_name(pod.pod_name);
    VolumesToWire(pod.volumes, entry);
  }
  return message;
}

v1::AgentMessage MessageOf(const BudgetReport& report) {
  v1::AgentMessage message;
  v1::BudgetReport& out = *message.mutable_budget_report();
  out.set_sequence(report.sequence);
  out.set_applied(report.applied);
  for (const BudgetUse& use : report.uses) {
    v1::BudgetReport::Use& to = *out.add_uses();
    to.set_budget(use.budget);
    to.set_team(use.team);
    to.set_usage(use.usage);
    to.set_demand(use.demand);
    to.set_held(use.held);
    to.set_throttled(use.throttled);
    to.set_connections(use.connections);
    to.set_held_connections(use.held_connections);
    to.set_refused_connections(use.refused_connections);
  }
  return message;
}

v1::ProbeResults::Result::Outcome OutcomeToWire(ProbeOutcome outcome) {
  switch (outcome) {
    case ProbeOutcome::kNotTried:
      return v1::ProbeResults::Result::NOT_TRIED;
    case ProbeOutcome::kReached:
      return v1::ProbeResults::Result::REACHED;
    case ProbeOutcome::kRefused:
      return v1::ProbeResults::Result::REFUSED;
    case ProbeOutcome::kUnreachable:
      return v1::ProbeResults::Result::UNREACHABLE;
    case ProbeOutcome::kTimedOut:
      return v1::ProbeResults::Result::TIMED_OUT;
  }
  return v1::ProbeResults::Result::OUTCOME_UNSPECIFIED;
}

v1::AgentMessage MessageOf(const ProbeAnswer& answer) {
  v1::AgentMessage message;
  v1::ProbeResults& out = *message.mutable_probe_results();
  out.set_id(answer.id);
  out.set_error(answer.error);
  for (const ProbeResult& result : answer.results) {
    v1::ProbeResults::Result& to = *out.add_results();
    to.set_address(result.target.address.ToString());
    to.set_port(result.target.port);
    to.set_outcome(OutcomeToWire(result.outcome));
    to.set_took_us(static_cast<uint32_t>(absl::ToInt64Microseconds(result.took)));
    to.set_detail(result.detail);
  }
  return message;
}

}  // namespace

v1::AgentMessage ToWire(const AgentReply& reply) {
  return std::visit([](const auto& said) { return MessageOf(said); }, reply);
}

v1::Hello HelloToWire(const NodeIdentity& identity, const Greeting& greeting, const Nic& nic) {
  v1::Hello hello;
  hello.set_node_name(identity.node_name);
  hello.set_vm_id(identity.vm_id);
  hello.set_boot_id(identity.boot_id);
  hello.set_agent_version(identity.agent_version);
  v1::Nic& out = *hello.add_nics();
  out.set_name(nic.name);
  out.set_mac(nic.mac.ToString());
  out.set_mtu(nic.mtu);
  for (const ip::Address& address : nic.addresses) out.add_addresses(address.ToBytes());
  for (const Assignment& assignment : greeting.in_use) {
    ToWire(assignment, [&] { return hello.add_in_use(); });
  }
  for (const ip::Address& address : greeting.cooldown) hello.add_cooldown(address.ToBytes());
  for (const auto& [key, value] : identity.labels) (*hello.mutable_labels())[key] = value;
  hello.set_vnet(identity.vnet);
  hello.set_policy_version(greeting.policy_version);
  hello.set_store_token(greeting.store_token);
  hello.set_instance(identity.instance);
  for (const ip::Prefix& subnet : identity.subnets) hello.add_subnets(subnet.ToString());
  return hello;
}

absl::StatusOr<DesiredState> FromWire(const v1::DesiredState& in) {
  DesiredState desired{.version = in.version(), .full = in.full(), .store_token = in.store_token()};
  uint64_t total = 0;
  const auto expand = [&](const v1::IpConfiguration& configuration,
                          const auto& take) -> absl::Status {
    ASSIGN_OR_RETURN(const ip::Prefix block, BlockOf(configuration));
    RETURN_IF_ERROR(CountBlock(block, total));
    for (uint64_t i = 0; i < block.size(); ++i) take(ip::Advance(block.base(), i));
    return absl::OkStatus();
  };
  for (const v1::IpConfiguration& added : in.added()) {
    const auto mac = ip::MacAddress::Parse(added.nic_mac());
    const std::optional<ip::MacAddress> nic = mac.ok() ? std::optional(*mac) : std::nullopt;
    RETURN_IF_ERROR(expand(added, [&](const ip::Address& address) {
      desired.added.push_back({.address = address,
                               .pool = added.pool(),
                               .cooldown = absl::Milliseconds(added.cooldown_ms()),
                               .nic = nic});
    }));
  }
  for (const v1::IpConfiguration& removed : in.removed()) {
    RETURN_IF_ERROR(
        expand(removed, [&](const ip::Address& address) { desired.removed.push_back(address); }));
  }
  for (const v1::PoolState& pool : in.pools()) {
    const auto unused = ip::Address::FromBytes(pool.unused());
    desired.pools.push_back({pool.name(),
                             pool.cidr(),
                             pool.usable(),
                             pool.attached(),
                             pool.free(),
                             {pool.namespaces().begin(), pool.namespaces().end()},
                             unused.ok() ? std::optional(*unused) : std::nullopt});
  }
  return desired;
}

absl::StatusOr<ReclaimRequest> FromWire(const v1::ReclaimRequest& in) {
  ReclaimRequest request{.id = in.id()};
  uint64_t total = 0;
  for (const v1::IpConfiguration& configuration : in.configurations()) {
    ASSIGN_OR_RETURN(const ip::Prefix block, BlockOf(configuration));
    RETURN_IF_ERROR(CountBlock(block, total));
    request.blocks.push_back(block);
  }
  return request;
}

Forecast FromWire(const v1::Forecast& in) {
  constexpr int64_t kMaxEtaMs = 24LL * 3600 * 1000;
  return {base::CutText(in.reason(), kMaxReasonBytes),
          absl::Milliseconds(std::clamp<int64_t>(in.eta_ms(), 0, kMaxEtaMs))};
}

absl::StatusOr<ProbeRequest> FromWire(const v1::ProbeRequest& in) {
  if (in.targets_size() > kMaxProbeTargets) {
    return absl::InvalidArgumentError(
        fmt::format("{} targets to probe, more than {}", in.targets_size(), kMaxProbeTargets));
  }
  ProbeRequest request{.id = in.id(),
                       .timeout = std::min(absl::Milliseconds(in.timeout_ms()), kMaxProbeTimeout)};
  for (const v1::ProbeRequest::Target& target : in.targets()) {
    ASSIGN_OR_RETURN(const ip::Address address, ip::Address::Parse(target.address()));
    if (target.port() > std::numeric_limits<uint16_t>::max()) {
      return absl::InvalidArgumentError(fmt::format("port {} to probe", target.port()));
    }
    request.targets.push_back({address, static_cast<uint16_t>(target.port())});
  }
  return request;
}

BudgetGrants FromWire(const v1::BudgetGrants& in) {
  BudgetGrants grants{.sequence = in.sequence(), .answers = in.answers(), .grants = {}};
  for (const v1::BudgetGrants::Grant& grant : in.grants()) {
    grants.grants.push_back({.budget = grant.budget(),
                             .team = grant.team(),
                             .rate = std::min(grant.rate(), kMaxGrantedRate),
                             .connections = grant.connections(),
                             .duration = absl::Milliseconds(grant.duration_ms())});
  }
  return grants;
}

absl::StatusOr<std::optional<ServerRequest>> FromWire(const v1::ServerMessage& in) {
  switch (in.message_case()) {
    case v1::ServerMessage::kDesired: {
      ASSIGN_OR_RETURN(DesiredState desired, FromWire(in.desired()));
      return ServerRequest(std::move(desired));
    }
    case v1::ServerMessage::kReclaim: {
      ASSIGN_OR_RETURN(ReclaimRequest request, FromWire(in.reclaim()));
      return ServerRequest(std::move(request));
    }
    case v1::ServerMessage::kInventoryRequest:
      return ServerRequest(InventoryRequest{in.inventory_request().id()});
    case v1::ServerMessage::kPolicy:
      return ServerRequest(policy::FromWire(in.policy()));
    case v1::ServerMessage::kForecast:
      return ServerRequest(FromWire(in.forecast()));
    case v1::ServerMessage::kAttachTracesRequest: {
      const v1::AttachTracesRequest& request = in.attach_traces_request();
      return ServerRequest(AttachTracesRequest{
          request.id(), {request.pod_namespace(), request.pod_name(), request.container_id()}});
    }
    case v1::ServerMessage::kProbeRequest: {
      ASSIGN_OR_RETURN(ProbeRequest request, FromWire(in.probe_request()));
      return ServerRequest(std::move(request));
    }
    case v1::ServerMessage::kBudgetGrants:
      return ServerRequest(FromWire(in.budget_grants()));
    case v1::ServerMessage::kEndAssignment: {
      ASSIGN_OR_RETURN(const ip::Address address,
                       ip::Address::FromBytes(in.end_assignment().address()));
      return ServerRequest(
          EndAssignment{address, in.end_assignment().generation(),
                        base::CutText(in.end_assignment().reason(), kMaxReasonBytes)});
    }
    case v1::ServerMessage::kPolicyTrial:
      return ServerRequest(
          PolicyTrial{in.policy_trial().id(), policy::FromWire(in.policy_trial().policy())});
    case v1::ServerMessage::kWelcome:
    case v1::ServerMessage::kReportAck:
    case v1::ServerMessage::MESSAGE_NOT_SET:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace spoke::netagent
