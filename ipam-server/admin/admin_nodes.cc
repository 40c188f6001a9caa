// The calls that an operator makes of one node's agent.
#include <string>
#include <vector>

#include "fmt/core.h"
#include "fmt/format.h"
#include "ipam-server/admin/admin_service.h"
#include "lib/base/status.h"

namespace spoke::ipam {

absl::Status AdminService::StartMaintenance(const Context& context,
                                            const v1::StartMaintenanceRequest& request,
                                            v1::StartMaintenanceResponse& response) {
  const std::vector<std::string> events(request.events().begin(), request.events().end());
  ASSIGN_OR_RETURN(const std::vector<std::string> told,
                   ipam::StartMaintenance(edges_.loop, request.node(), events));
  for (const std::string& event : told) response.add_events(event);
  ChangeSummary summary{.method = "StartMaintenance",
                        .what = fmt::format("node {}: maintenance {} may begin", request.node(),
                                            fmt::join(told, ", "))};
  return RecordCall(context, summary);
}

absl::Status AdminService::GetNodeData(const Context& /*context*/,
                                       const v1::GetNodeDataRequest& request,
                                       v1::GetNodeDataResponse& response) {
  const std::vector<std::string> parts(request.parts().begin(), request.parts().end());
  ASSIGN_OR_RETURN(const node_api::NodeDataAnswer data,
                   AskNodeData(edges_.loop, request.node(), parts));
  if (!data.error.empty()) return absl::FailedPreconditionError(data.error);
  for (const node_api::NodeDataPart& part : data.parts) {
    v1::NodeData::Part& to = *response.add_parts();
    to.set_name(part.name);
    to.set_text(part.text);
  }
  return absl::OkStatus();
}

}  // namespace spoke::ipam
