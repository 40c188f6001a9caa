#include "ipam-server/session/node_convert.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "fmt/core.h"
#include "lib/base/check.h"
#include "lib/base/cut_text.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

using base::CutText;

constexpr size_t kMaxNameLength = 253;  // RFC 1123 host names, and plenty for the rest.
constexpr size_t kMaxIdLength = 512;    // A cloud's VM id is a path.
constexpr int kMaxAssignments = 8192;   // Far above what one node can hold,
constexpr int kMaxAddresses = 8192;     // and so is this of addresses and of ranges.
constexpr int kMaxNics = 64;
constexpr int kMaxLabels = 64;
constexpr int kMaxSubnets = 16;  // A NIC has one of each family.
// Of the answer about one pod, which an agent gives from its last few hundred ADDs.
constexpr int kMaxTraces = 64;
constexpr int kMaxSteps = 64;
constexpr int kMaxTraceAddresses = 16;
constexpr size_t kMaxErrorLength = 4096;
constexpr size_t kMaxReasonLength = 1024;       // It goes into every waiting pod's error.
constexpr uint64_t kMaxStepUs = 3'600'000'000;  // Runtimes give up after minutes.

// Printable ASCII without blanks: these end up in keys, logs and tables.
absl::Status CheckName(std::string_view field, std::string_view text, size_t max_length) {
  const bool printable =
      std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7F; });
  if (!text.empty() && text.size() <= max_length && printable) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{} must be 1 to {} printable characters without blanks", field, max_length));
}

absl::Status CheckCount(std::string_view field, int count, int most) {
  if (count <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{} has {} entries, and {} at most are taken", field, count, most));
}

// The error of one of many, with its place.
absl::Status At(std::string_view field, int index, const absl::Status& status) {
  return base::Annotate(status, fmt::format("{} {}", field, index));
}

absl::StatusOr<Assignment> FromWire(const v1::Assignment& in) {
  Assignment assignment;
  ASSIGN_OR_RETURN(assignment.address, ip::Address::FromBytes(in.address()));
  RETURN_IF_ERROR(CheckName("container_id", in.container_id(), kMaxIdLength));
  RETURN_IF_ERROR(CheckName("ifname", in.ifname(), kMaxNameLength));
  assignment.generation = in.generation();
  assignment.since = absl::FromUnixMillis(in.since_unix_ms());
  assignment.lessee = {.container_id = in.container_id(),
                       .ifname = in.ifname(),
                       .pod_namespace = CutText(in.pod_namespace(), kMaxNameLength),
                       .pod_name = CutText(in.pod_name(), kMaxNameLength),
                       .pod_uid = CutText(in.pod_uid(), kMaxNameLength)};
  return assignment;
}

absl::StatusOr<std::vector<Assignment>> FromWire(
    std::string_view field, const google::protobuf::RepeatedPtrField<v1::Assignment>& in) {
  RETURN_IF_ERROR(CheckCount(field, in.size(), kMaxAssignments));
  std::vector<Assignment> assignments;
  for (int i = 0; i < in.size(); ++i) {
    auto assignment = FromWire(in[i]);
    if (!assignment.ok()) return At(field, i, assignment.status());
    assignments.push_back(*std::move(assignment));
  }
  return assignments;
}

absl::StatusOr<std::vector<ip::Address>> AddressesFromWire(
    std::string_view field, const google::protobuf::RepeatedPtrField<std::string>& in) {
  RETURN_IF_ERROR(CheckCount(field, in.size(), kMaxAddresses));
  std::vector<ip::Address> addresses;
  for (int i = 0; i < in.size(); ++i) {
    const auto address = ip::Address::FromBytes(in[i]);
    if (!address.ok()) return At(field, i, address.status());
    addresses.push_back(*address);
  }
  return addresses;
}

void ToWire(const ip::Prefix& range, v1::IpConfiguration& out) {
  out.set_base(range.base().ToBytes());
  out.set_prefix_length(static_cast<uint32_t>(range.length()));
}

absl::StatusOr<ip::Prefix> RangeFromWire(const v1::IpConfiguration& in) {
  ASSIGN_OR_RETURN(const ip::Address base, ip::Address::FromBytes(in.base()));
  if (in.prefix_length() > static_cast<uint32_t>(base.bits())) {
    return absl::InvalidArgumentError(
        fmt::format("prefix length {} of {}", in.prefix_length(), base.ToString()));
  }
  return ip::Prefix::Of(base, static_cast<int>(in.prefix_length()));
}

absl::StatusOr<std::vector<ip::Prefix>> RangesFromWire(
    std::string_view field, const google::protobuf::RepeatedPtrField<v1::IpConfiguration>& in) {
  RETURN_IF_ERROR(CheckCount(field, in.size(), kMaxAddresses));
  std::vector<ip::Prefix> ranges;
  for (int i = 0; i < in.size(); ++i) {
    const auto range = RangeFromWire(in[i]);
    if (!range.ok()) return At(field, i, range.status());
    ranges.push_back(*range);
  }
  return ranges;
}

void ToWire(const DesiredState& in, v1::DesiredState& out) {
  out.set_version(in.version);
  out.set_full(in.full);
  for (const DesiredConfiguration& desired : in.added) {
    v1::IpConfiguration& configuration = *out.add_added();
    ToWire(desired.range, configuration);
    configuration.set_name(desired.name);
    configuration.set_pool(desired.pool);
    configuration.set_nic_mac(desired.nic_mac.ToString());
    configuration.set_cooldown_ms(
        static_cast<uint32_t>(absl::ToInt64Milliseconds(desired.cooldown)));
  }
  for (const ip::Prefix& range : in.removed) ToWire(range, *out.add_removed());
  out.set_store_token(in.store_token);
  for (const PoolState& pool : in.pools) {
    v1::PoolState& state = *out.add_pools();
    state.set_name(pool.name);
    state.set_cidr(pool.cidr);
    state.set_usable(pool.usable);
    state.set_attached(pool.attached);
    state.set_free(pool.free);
    for (const std::string& name : pool.namespaces) state.add_namespaces(name);
    if (pool.unused) state.set_unused(pool.unused->ToBytes());
  }
}

void ToWire(const BudgetGrants& in, v1::BudgetGrants& out) {
  out.set_sequence(in.sequence);
  out.set_answers(in.answers);
  out.mutable_grants()->Reserve(static_cast<int>(in.grants.size()));
  for (const BudgetGrant& grant : in.grants) {
    v1::BudgetGrants::Grant& to = *out.add_grants();
    to.set_budget(grant.budget);
    to.set_team(grant.team);
    to.set_rate(grant.rate);
    to.set_connections(grant.connections);
    // Down, so that no node holds it longer than the server believes.
    to.set_duration_ms(static_cast<uint32_t>(std::clamp<int64_t>(
        absl::ToInt64Milliseconds(grant.duration), 0, std::numeric_limits<uint32_t>::max())));
  }
}

// Labels go into records and indices, so a node may not bring any number of them.
absl::Status CheckLabels(const v1::Hello& in) {
  RETURN_IF_ERROR(CheckCount("labels", static_cast<int>(in.labels().size()), kMaxLabels));
  for (const auto& [key, value] : in.labels()) {
    RETURN_IF_ERROR(CheckName("a label", key, kMaxNameLength));
    if (!value.empty()) RETURN_IF_ERROR(CheckName("label " + key, value, kMaxNameLength));
  }
  return absl::OkStatus();
}

// In lower case, since that is how everybody compares it: the cloud itself varies the case.
absl::StatusOr<std::string> InstanceFromWire(const std::string& in) {
  if (in.empty()) return in;
  RETURN_IF_ERROR(CheckName("instance", in, kMaxIdLength));
  return absl::AsciiStrToLower(in);
}

absl::StatusOr<std::vector<ip::Prefix>> SubnetsFromWire(
    const google::protobuf::RepeatedPtrField<std::string>& in) {
  RETURN_IF_ERROR(CheckCount("subnets", in.size(), kMaxSubnets));
  std::vector<ip::Prefix> subnets;
  for (const std::string& text : in) {
    auto subnet = ip::Prefix::Parse(text);
    if (!subnet.ok()) return base::Annotate(subnet.status(), "subnets");
    subnets.push_back(*subnet);
  }
  return subnets;
}

absl::Duration StepTime(uint64_t us) {
  return absl::Microseconds(static_cast<int64_t>(std::min(us, kMaxStepUs)));
}

TrafficByClass VolumesFromWire(
    const google::protobuf::RepeatedPtrField<v1::TrafficReport::Volume>& in) {
  TrafficByClass volumes;
  for (int i = 0; i < std::min(in.size(), kMaxReportClasses); ++i) {
    volumes.emplace(CutText(in[i].traffic_class(), kMaxNameLength),
                    TrafficVolume{.sent = in[i].sent(), .received = in[i].received()});
  }
  return volumes;
}

ProbeOutcome OutcomeFromWire(v1::ProbeResults::Result::Outcome in) {
  switch (in) {
    case v1::ProbeResults::Result::REACHED:
      return ProbeOutcome::kReached;
    case v1::ProbeResults::Result::REFUSED:
      return ProbeOutcome::kRefused;
    case v1::ProbeResults::Result::UNREACHABLE:
      return ProbeOutcome::kUnreachable;
    case v1::ProbeResults::Result::TIMED_OUT:
      return ProbeOutcome::kTimedOut;
    default:
      return ProbeOutcome::kNotTried;
  }
}

absl::StatusOr<AttachTrace> FromWire(const v1::AttachTrace& in) {
  AttachTrace trace{.container_id = CutText(in.container_id(), kMaxIdLength),
                    .ifname = CutText(in.ifname(), kMaxNameLength),
                    .pod_namespace = CutText(in.pod_namespace(), kMaxNameLength),
                    .pod_name = CutText(in.pod_name(), kMaxNameLength),
                    .trace_id = CutText(in.trace_id(), kMaxNameLength),
                    .since = absl::FromUnixMillis(in.since_unix_ms()),
                    .error = CutText(in.error(), kMaxErrorLength)};
  for (int i = 0; i < std::min(in.steps_size(), kMaxSteps); ++i) {
    const v1::AttachTrace::Step& step = in.steps(i);
    trace.steps.push_back({.name = CutText(step.name(), kMaxNameLength),
                           .begin = StepTime(step.begin_us()),
                           .took = StepTime(step.took_us())});
  }
  for (int i = 0; i < std::min(in.addresses_size(), kMaxTraceAddresses); ++i) {
    ASSIGN_OR_RETURN(trace.addresses.emplace_back(), ip::Address::FromBytes(in.addresses(i)));
  }
  return trace;
}

// But for the node's name, which has been checked.
absl::StatusOr<Hello> HelloFromWire(const v1::Hello& in) {
  RETURN_IF_ERROR(CheckName("vm_id", in.vm_id(), kMaxIdLength));
  RETURN_IF_ERROR(CheckName("boot_id", in.boot_id(), kMaxNameLength));
  if (in.nics().empty()) return absl::InvalidArgumentError("nics names no NIC");
  RETURN_IF_ERROR(CheckCount("nics", in.nics_size(), kMaxNics));
  Hello hello;
  hello.key = {.name = in.node_name(), .vm_id = in.vm_id()};
  hello.boot_id = in.boot_id();
  hello.agent_version = CutText(in.agent_version(), kMaxNameLength);
  ASSIGN_OR_RETURN(hello.nic_mac, ip::MacAddress::Parse(in.nics(0).mac()));
  ASSIGN_OR_RETURN(hello.in_use, FromWire("in_use", in.in_use()));
  ASSIGN_OR_RETURN(hello.cooldown, AddressesFromWire("cooldown", in.cooldown()));
  RETURN_IF_ERROR(CheckLabels(in));
  hello.labels.insert(in.labels().begin(), in.labels().end());
  if (!in.vnet().empty()) RETURN_IF_ERROR(CheckName("vnet", in.vnet(), kMaxIdLength));
  hello.vnet = in.vnet();
  hello.policy_version = in.policy_version();
  ASSIGN_OR_RETURN(hello.instance, InstanceFromWire(in.instance()));
  ASSIGN_OR_RETURN(hello.subnets, SubnetsFromWire(in.subnets()));
  hello.store_token = CutText(in.store_token(), kMaxIdLength);
  return hello;
}

}  // namespace

absl::StatusOr<Hello> FromWire(const v1::Hello& in) {
  RETURN_IF_ERROR(CheckName("node_name", in.node_name(), kMaxNameLength));
  if (in.node_name().find('/') != std::string::npos) {
    return absl::InvalidArgumentError("node_name must not hold a slash");
  }
  auto hello = HelloFromWire(in);
  if (!hello.ok()) return base::Annotate(hello.status(), "node " + in.node_name());
  return hello;
}

absl::StatusOr<ReclaimAnswer> FromWire(const v1::ReclaimAnswer& in) {
  ReclaimAnswer answer{.id = in.id()};
  ASSIGN_OR_RETURN(answer.agreed, RangesFromWire("agreed", in.agreed()));
  ASSIGN_OR_RETURN(answer.denied, RangesFromWire("denied", in.denied()));
  return answer;
}

absl::StatusOr<Inventory> FromWire(const v1::Inventory& in) {
  Inventory inventory{.id = in.id()};
  ASSIGN_OR_RETURN(inventory.held, AddressesFromWire("held", in.held()));
  ASSIGN_OR_RETURN(inventory.in_use, FromWire("in_use", in.in_use()));
  return inventory;
}

absl::StatusOr<std::pair<ip::Address, std::string>> FromWire(const v1::ConflictReport& in) {
  ASSIGN_OR_RETURN(const ip::Address address, ip::Address::FromBytes(in.address()));
  std::string other;
  if (!in.other_mac().empty()) {
    ASSIGN_OR_RETURN(const ip::MacAddress mac, ip::MacAddress::Parse(in.other_mac()));
    other = mac.ToString();
  }
  return std::pair{address, other};
}

Demand FromWire(const v1::Demand& in) {
  Demand demand;
  uint32_t left = kMaxWaitingPods;
  for (const v1::Demand::Waiting& waiting : in.waiting()) {
    const uint32_t pods = std::min(waiting.pods(), left);
    if (pods == 0) continue;
    const std::string pod_namespace = CutText(waiting.pod_namespace(), kMaxNameLength);
    if (demand.waiting.size() >= kMaxWaitingNamespaces && !demand.waiting.contains(pod_namespace)) {
      continue;
    }
    demand.waiting[pod_namespace] += pods;
    left -= pods;
  }
  return demand;
}

absl::StatusOr<AttachTraces> FromWire(const v1::AttachTraces& in) {
  AttachTraces traces{.id = in.id()};
  for (int i = 0; i < std::min(in.traces_size(), kMaxTraces); ++i) {
    ASSIGN_OR_RETURN(traces.traces.emplace_back(), FromWire(in.traces(i)));
  }
  return traces;
}

TrafficReport FromWire(const v1::TrafficReport& in) {
  TrafficReport report{.epoch_unix_ms = in.epoch_unix_ms()};
  for (int i = 0; i < std::min(in.namespaces_size(), kMaxReportNamespaces); ++i) {
    const v1::TrafficReport::Namespace& entry = in.namespaces(i);
    report.namespaces.emplace(CutText(entry.name(), kMaxNameLength),
                              VolumesFromWire(entry.volumes()));
  }
  for (int i = 0; i < std::min(in.pods_size(), kMaxReportPods); ++i) {
    const v1::TrafficReport::Pod& pod = in.pods(i);
    report.pods.push_back({.pod_namespace = CutText(pod.pod_namespace(), kMaxNameLength),
                           .pod_name = CutText(pod.pod_name(), kMaxNameLength),
                           .volumes = VolumesFromWire(pod.volumes())});
  }
  return report;
}

BudgetReport FromWire(const v1::BudgetReport& in) {
  BudgetReport report{.sequence = in.sequence(), .applied = in.applied()};
  const int uses = std::min(in.uses_size(), kMaxBudgetUses);
  report.uses.reserve(static_cast<size_t>(uses));
  for (int i = 0; i < uses; ++i) {
    const v1::BudgetReport::Use& use = in.uses(i);
    if (!CheckName("budget", use.budget(), kMaxNameLength).ok() ||
        !CheckName("team", use.team(), kMaxNameLength).ok()) {
      continue;  // No budget and no team is called that.
    }
    report.uses.push_back(
        {.budget = use.budget(),
         .team = use.team(),
         .usage = std::min(use.usage(), kMaxBudgetRate),
         .demand = std::min(use.demand(), kMaxBudgetRate),
         .held = std::min(use.held(), kMaxBudgetRate),
         .throttled = std::min(use.throttled(), kMaxBudgetRate),
         .connections = std::min(use.connections(), kMaxBudgetConnections),
         .held_connections = std::min(use.held_connections(), kMaxBudgetConnections),
         .refused_connections = std::min(use.refused_connections(), kMaxBudgetConnections)});
  }
  return report;
}

absl::StatusOr<ProbeAnswer> FromWire(const v1::ProbeResults& in) {
  ProbeAnswer answer{.id = in.id(), .error = CutText(in.error(), kMaxErrorLength)};
  for (int i = 0; i < std::min(in.results_size(), static_cast<int>(kMaxProbeTargets)); ++i) {
    const v1::ProbeResults::Result& result = in.results(i);
    ASSIGN_OR_RETURN(const ip::Address address, ip::Address::Parse(result.address()));
    if (result.port() > std::numeric_limits<uint16_t>::max()) {
      return absl::InvalidArgumentError(fmt::format("port {} of a probe", result.port()));
    }
    answer.results.push_back(
        {.target = {.address = address, .port = static_cast<uint16_t>(result.port())},
         .outcome = OutcomeFromWire(result.outcome()),
         .took = absl::Microseconds(result.took_us()),
         .detail = CutText(result.detail(), kMaxErrorLength)});
  }
  return answer;
}

ConnectionCut FromWire(const v1::CutCount& in) {
  // More than any kernel tracks; so the sum of all nodes fits.
  const uint64_t connections = std::min(in.connections(), kMaxTrackedConnections);
  return {.connections = connections, .cut = std::min(in.cut(), connections)};
}

PolicyTrialAnswer FromWire(const v1::PolicyTrialResult& in) {
  return {.id = in.id(), .cut = FromWire(in.cut()), .error = CutText(in.error(), kMaxErrorLength)};
}

absl::StatusOr<AssignmentReport> FromWire(const v1::AssignmentReport& in) {
  AssignmentReport report;
  report.sequence = in.sequence();
  ASSIGN_OR_RETURN(report.in_use, FromWire("in_use", in.in_use()));
  RETURN_IF_ERROR(CheckCount("released", in.released_size(), kMaxAssignments));
  for (int i = 0; i < in.released_size(); ++i) {
    const auto address = ip::Address::FromBytes(in.released(i).address());
    if (!address.ok()) return At("released", i, address.status());
    report.released.push_back({.address = *address, .generation = in.released(i).generation()});
  }
  ASSIGN_OR_RETURN(report.cooled, AddressesFromWire("cooled", in.cooled()));
  return report;
}

v1::ServerMessage ToWire(const ToAgent& message, std::string_view server_version) {
  v1::ServerMessage out;
  if (const auto* welcome = std::get_if<Welcome>(&message)) {
    out.mutable_welcome()->set_session_epoch(welcome->session_epoch);
    out.mutable_welcome()->set_server_version(std::string(server_version));
    out.mutable_welcome()->set_warning(CutText(welcome->warning, kMaxReasonLength));
  } else if (const auto* desired = std::get_if<DesiredState>(&message)) {
    ToWire(*desired, *out.mutable_desired());
  } else if (const auto* ack = std::get_if<ReportAck>(&message)) {
    out.mutable_report_ack()->set_sequence(ack->sequence);
  } else if (const auto* reclaim = std::get_if<ReclaimRequest>(&message)) {
    out.mutable_reclaim()->set_id(reclaim->id);
    for (const ip::Prefix& range : reclaim->ranges) {
      ToWire(range, *out.mutable_reclaim()->add_configurations());
    }
  } else if (const auto* inventory = std::get_if<InventoryRequest>(&message)) {
    out.mutable_inventory_request()->set_id(inventory->id);
  } else if (const auto* forecast = std::get_if<Forecast>(&message)) {
    out.mutable_forecast()->set_reason(CutText(forecast->reason, kMaxReasonLength));
    out.mutable_forecast()->set_eta_ms(
        absl::ToInt64Milliseconds(absl::Ceil(forecast->eta, absl::Milliseconds(1))));
  } else if (const auto* traces = std::get_if<AttachTracesRequest>(&message)) {
    out.mutable_attach_traces_request()->set_id(traces->id);
    out.mutable_attach_traces_request()->set_pod_namespace(traces->pod_namespace);
    out.mutable_attach_traces_request()->set_pod_name(traces->pod_name);
  } else if (const auto* probe = std::get_if<ProbeRequest>(&message)) {
    v1::ProbeRequest& request = *out.mutable_probe_request();
    request.set_id(probe->id);
    request.set_timeout_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(probe->timeout)));
    for (const ProbeTarget& target : probe->targets) {
      v1::ProbeRequest::Target& to = *request.add_targets();
      to.set_address(target.address.ToString());
      to.set_port(target.port);
    }
  } else if (const auto* grants = std::get_if<BudgetGrants>(&message)) {
    ToWire(*grants, *out.mutable_budget_grants());
  } else if (const auto* end = std::get_if<EndAssignment>(&message)) {
    out.mutable_end_assignment()->set_address(end->address.ToBytes());
    out.mutable_end_assignment()->set_generation(end->generation);
    out.mutable_end_assignment()->set_reason(CutText(end->reason, kMaxReasonLength));
  } else {
    CHECK(!std::holds_alternative<PolicyUpdate>(message) &&
              !std::holds_alternative<PolicyTrial>(message),
          "bundles are made by BundleMessages");
  }
  return out;
}

}  // namespace spoke::ipam
