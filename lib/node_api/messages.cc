#include "lib/node_api/messages.h"

#include <utility>

#include "proto/spoke/v1/node.pb.h"

namespace spoke::node_api {
namespace {

// Writes each value to its place in the message that carries it.
struct AgentWriter {
  v1::AgentMessage& out;

  void operator()(const Hello& in) const { ToWire(in, *out.mutable_hello()); }
  void operator()(const AssignmentReport& in) const { ToWire(in, *out.mutable_report()); }
  void operator()(const DesiredAck& in) const { out.mutable_ack()->set_version(in.version); }
  void operator()(const ReclaimAnswer& in) const { ToWire(in, *out.mutable_reclaim_answer()); }
  void operator()(const PolicyAck& in) const { ToWire(in, *out.mutable_policy_ack()); }
  void operator()(const Inventory& in) const { ToWire(in, *out.mutable_inventory()); }
  void operator()(const ConflictReport& in) const { ToWire(in, *out.mutable_conflict()); }
  void operator()(const Demand& in) const { ToWire(in, *out.mutable_demand()); }
  void operator()(const AttachTracesAnswer& in) const { ToWire(in, *out.mutable_attach_traces()); }
  void operator()(const TrafficReport& in) const { ToWire(in, *out.mutable_traffic()); }
  void operator()(const ProbeAnswer& in) const { ToWire(in, *out.mutable_probe_results()); }
  void operator()(const BudgetReport& in) const { ToWire(in, *out.mutable_budget_report()); }
  void operator()(const PolicyTrialAnswer& in) const {
    ToWire(in, *out.mutable_policy_trial_result());
  }
  void operator()(const NodeFindings& in) const { ToWire(in, *out.mutable_node_findings()); }
  void operator()(const Maintenance& in) const { ToWire(in, *out.mutable_maintenance()); }
  void operator()(const NodeDataAnswer& in) const { ToWire(in, *out.mutable_node_data()); }
};

struct ServerWriter {
  v1::ServerMessage& out;

  void operator()(const Welcome& in) const { ToWire(in, *out.mutable_welcome()); }
  void operator()(const DesiredState& in) const { ToWire(in, *out.mutable_desired()); }
  void operator()(const ReportAck& in) const {
    out.mutable_report_ack()->set_sequence(in.sequence);
  }
  void operator()(const ReclaimRequest& in) const { ToWire(in, *out.mutable_reclaim()); }
  void operator()(const PolicyUpdate& in) const { ToWire(in, *out.mutable_policy()); }
  void operator()(const InventoryRequest& in) const {
    out.mutable_inventory_request()->set_id(in.id);
  }
  void operator()(const Forecast& in) const { ToWire(in, *out.mutable_forecast()); }
  void operator()(const AttachTracesRequest& in) const {
    ToWire(in, *out.mutable_attach_traces_request());
  }
  void operator()(const ProbeRequest& in) const { ToWire(in, *out.mutable_probe_request()); }
  void operator()(const BudgetGrants& in) const { ToWire(in, *out.mutable_budget_grants()); }
  void operator()(const EndAssignment& in) const { ToWire(in, *out.mutable_end_assignment()); }
  void operator()(const PolicyTrial& in) const { ToWire(in, *out.mutable_policy_trial()); }
  void operator()(const MaintenanceStart& in) const {
    ToWire(in, *out.mutable_maintenance_start());
  }
  void operator()(const NodeDataRequest& in) const { ToWire(in, *out.mutable_node_data_request()); }
};

// Turns what was read of one part into the message it came in.
template <typename Message, typename Part>
absl::StatusOr<std::optional<Message>> Said(Part part) {
  return std::optional<Message>(std::move(part));
}
template <typename Message, typename Part>
absl::StatusOr<std::optional<Message>> Said(absl::StatusOr<Part> part) {
  if (!part.ok()) return part.status();
  return std::optional<Message>(*std::move(part));
}

}  // namespace

v1::AgentMessage ToWire(const AgentMessage& in) {
  v1::AgentMessage out;
  std::visit(AgentWriter{out}, in);
  return out;
}

v1::ServerMessage ToWire(const ServerMessage& in) {
  v1::ServerMessage out;
  std::visit(ServerWriter{out}, in);
  return out;
}

absl::StatusOr<std::optional<AgentMessage>> FromWire(const v1::AgentMessage& in) {
  switch (in.message_case()) {
    case v1::AgentMessage::kHello:
      return Said<AgentMessage>(FromWire(in.hello()));
    case v1::AgentMessage::kReport:
      return Said<AgentMessage>(FromWire(in.report()));
    case v1::AgentMessage::kAck:
      return Said<AgentMessage>(DesiredAck{in.ack().version()});
    case v1::AgentMessage::kReclaimAnswer:
      return Said<AgentMessage>(FromWire(in.reclaim_answer()));
    case v1::AgentMessage::kPolicyAck:
      return Said<AgentMessage>(FromWire(in.policy_ack()));
    case v1::AgentMessage::kInventory:
      return Said<AgentMessage>(FromWire(in.inventory()));
    case v1::AgentMessage::kConflict:
      return Said<AgentMessage>(FromWire(in.conflict()));
    case v1::AgentMessage::kDemand:
      return Said<AgentMessage>(FromWire(in.demand()));
    case v1::AgentMessage::kAttachTraces:
      return Said<AgentMessage>(FromWire(in.attach_traces()));
    case v1::AgentMessage::kTraffic:
      return Said<AgentMessage>(FromWire(in.traffic()));
    case v1::AgentMessage::kProbeResults:
      return Said<AgentMessage>(FromWire(in.probe_results()));
    case v1::AgentMessage::kBudgetReport:
      return Said<AgentMessage>(FromWire(in.budget_report()));
    case v1::AgentMessage::kPolicyTrialResult:
      return Said<AgentMessage>(FromWire(in.policy_trial_result()));
    case v1::AgentMessage::kNodeFindings:
      return Said<AgentMessage>(FromWire(in.node_findings()));
    case v1::AgentMessage::kMaintenance:
      return Said<AgentMessage>(FromWire(in.maintenance()));
    case v1::AgentMessage::kNodeData:
      return Said<AgentMessage>(FromWire(in.node_data()));
    case v1::AgentMessage::MESSAGE_NOT_SET:
      return std::nullopt;
  }
  return std::nullopt;
}

absl::StatusOr<std::optional<ServerMessage>> FromWire(const v1::ServerMessage& in) {
  switch (in.message_case()) {
    case v1::ServerMessage::kWelcome:
      return Said<ServerMessage>(FromWire(in.welcome()));
    case v1::ServerMessage::kDesired:
      return Said<ServerMessage>(FromWire(in.desired()));
    case v1::ServerMessage::kReportAck:
      return Said<ServerMessage>(ReportAck{in.report_ack().sequence()});
    case v1::ServerMessage::kReclaim:
      return Said<ServerMessage>(FromWire(in.reclaim()));
    case v1::ServerMessage::kPolicy:
      return Said<ServerMessage>(FromWire(in.policy()));
    case v1::ServerMessage::kInventoryRequest:
      return Said<ServerMessage>(InventoryRequest{in.inventory_request().id()});
    case v1::ServerMessage::kForecast:
      return Said<ServerMessage>(FromWire(in.forecast()));
    case v1::ServerMessage::kAttachTracesRequest:
      return Said<ServerMessage>(FromWire(in.attach_traces_request()));
    case v1::ServerMessage::kProbeRequest:
      return Said<ServerMessage>(FromWire(in.probe_request()));
    case v1::ServerMessage::kBudgetGrants:
      return Said<ServerMessage>(FromWire(in.budget_grants()));
    case v1::ServerMessage::kEndAssignment:
      return Said<ServerMessage>(FromWire(in.end_assignment()));
    case v1::ServerMessage::kPolicyTrial:
      return Said<ServerMessage>(FromWire(in.policy_trial()));
    case v1::ServerMessage::kMaintenanceStart:
      return Said<ServerMessage>(FromWire(in.maintenance_start()));
    case v1::ServerMessage::kNodeDataRequest:
      return Said<ServerMessage>(FromWire(in.node_data_request()));
    case v1::ServerMessage::MESSAGE_NOT_SET:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace spoke::node_api
