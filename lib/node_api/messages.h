// All that server and agent say to each other over the agent's stream, in one value each way. What
// the parts are, and what becomes of a field that is wrong or too long, is in the header of each
// topic. Pure.
#pragma once

#include <optional>
#include <variant>

#include "absl/status/statusor.h"
#include "lib/node_api/assignments.h"
#include "lib/node_api/attach_traces.h"
#include "lib/node_api/budgets.h"
#include "lib/node_api/desired.h"
#include "lib/node_api/maintenance.h"
#include "lib/node_api/node_data.h"
#include "lib/node_api/node_findings.h"
#include "lib/node_api/policy.h"
#include "lib/node_api/probes.h"
#include "lib/node_api/session.h"
#include "lib/node_api/traffic.h"

namespace spoke::v1 {
class AgentMessage;
class ServerMessage;
}  // namespace spoke::v1

namespace spoke::node_api {

using AgentMessage =
    std::variant<Hello, AssignmentReport, DesiredAck, ReclaimAnswer, PolicyAck, Inventory,
                 ConflictReport, Demand, AttachTracesAnswer, TrafficReport, ProbeAnswer,
                 BudgetReport, PolicyTrialAnswer, NodeFindings, Maintenance, NodeDataAnswer>;

using ServerMessage =
    std::variant<Welcome, DesiredState, ReportAck, ReclaimRequest, PolicyUpdate, InventoryRequest,
                 Forecast, AttachTracesRequest, ProbeRequest, BudgetGrants, EndAssignment,
                 PolicyTrial, MaintenanceStart, NodeDataRequest>;

v1::AgentMessage ToWire(const AgentMessage& in);
v1::ServerMessage ToWire(const ServerMessage& in);

// Reads a message; nullopt: it is what only a newer version says. Errors: kInvalidArgument (a field
// that cannot be).
absl::StatusOr<std::optional<AgentMessage>> FromWire(const v1::AgentMessage& in);
absl::StatusOr<std::optional<ServerMessage>> FromWire(const v1::ServerMessage& in);

}  // namespace spoke::node_api
