// The calls about the network between nodes.
#include <set>
#include <utility>

#include "fmt/core.h"
#include "ipam-server/admin/admin_service.h"
#include "ipam-server/admin/node_check.h"
#include "ipam-server/nodes/reachability/reachability_job.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

constexpr absl::Duration kShortestTimeout = absl::Milliseconds(10);

bool HasPodOf(const JobName& job, const NodeRecord& record) {
  for (const auto& [base, configuration] : record.configurations) {
    for (const Slot& slot : configuration.slots) {
      if (slot.lessee != nullptr && slot.use == node_api::Use::kInUse &&
          job.Has(slot.lessee->pod_namespace, slot.lessee->pod_name)) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

absl::Status AdminService::GetReachability(const Context&,
                                           const v1::GetReachabilityRequest& request,
                                           v1::GetReachabilityResponse& response) {
  const ReachabilitySettings& settings = edges_.reachability.settings();
  if (settings.interval <= absl::ZeroDuration()) return absl::OkStatus();
  if (const auto judged = edges_.reachability.Get()) {
    ASSIGN_OR_RETURN(response, DescribeReachability(*judged, request.node()));
  } else if (!request.node().empty()) {
    return absl::FailedPreconditionError(
        "no round of probes has ended yet since this server began; try again soon");
  }
  response.set_enabled(true);
  response.set_group_label(settings.group_label);
  return absl::OkStatus();
}

absl::Status AdminService::CollectNodes(const Context& context,
                                        const v1::CheckNodesRequest& request, CheckedNodes& nodes) {
  std::optional<JobName> job;
  if (!request.job().empty()) {
    ASSIGN_OR_RETURN(job, ParseJobName(request.job()));
  }
  std::set<std::string> named(request.nodes().begin(), request.nodes().end());
  const std::string& group = edges_.reachability.settings().group_label;
  RETURN_IF_ERROR(AskForNodes(context, [&](const FleetView& view, const NodeRecord& record) {
    if (record.mode == NodeMode::kRetired) return;
    const bool is_named = named.erase(record.key.name) > 0;
    if (!is_named && !(job && HasPodOf(*job, record))) return;
    const auto session = view.sessions.find(record.key);
    if (session == view.sessions.end()) {
      nodes.unheard.push_back(record.key.name + ": its agent is not connected");
    } else {
      nodes.nodes.push_back(ProbedNodeOf(record, session->second, group));
    }
  }));
  if (!named.empty()) {
    return absl::NotFoundError(
        fmt::format("there is no node {}; see: spokectl node list", *named.begin()));
  }
  const size_t count = nodes.nodes.size() + nodes.unheard.size();
  if (count == 0 && job) {
    return absl::NotFoundError(fmt::format("no pod of job {} has an address now", request.job()));
  }
  if (nodes.nodes.size() < 2) {
    return absl::FailedPreconditionError(fmt::format(
        "it takes two nodes whose agents are connected to probe each other: {} of {} are",
        nodes.nodes.size(), count));
  }
  if (nodes.nodes.size() > kMaxCheckedNodes) {
    return absl::InvalidArgumentError(
        fmt::format("{} nodes, more than the {} that can be checked at once", nodes.nodes.size(),
                    kMaxCheckedNodes));
  }
  return absl::OkStatus();
}

absl::Status AdminService::CheckNodes(const Context& context, const v1::CheckNodesRequest& request,
                                      Writer<v1::CheckNodesResponse>& writer) {
  absl::Duration timeout = kReachTimeout;
  if (request.timeout_ms() != 0) timeout = absl::Milliseconds(request.timeout_ms());
  if (timeout < kShortestTimeout || timeout > node_api::kMaxProbeTimeout) {
    return absl::InvalidArgumentError(fmt::format(
        "a timeout of {}: it is from {} to {}", absl::FormatDuration(timeout),
        absl::FormatDuration(kShortestTimeout), absl::FormatDuration(node_api::kMaxProbeTimeout)));
  }
  CheckedNodes nodes;
  RETURN_IF_ERROR(CollectNodes(context, request, nodes));
  // Nodes are to speak to others on an operator's word.
  ChangeSummary summary{.method = "CheckNodes",
                        .what = fmt::format("{} nodes probe each other", nodes.nodes.size())};
  RETURN_IF_ERROR(RecordCall(context, summary));
  const absl::Time began = edges_.clock.Now();
  ProbesSeen seen;
  for (const ProbedNode& node : nodes.nodes) seen.places.push_back(node.node);
  std::map<std::string, std::string> failed;
  const std::vector<CheckPart> parts = PlanCheck(nodes.nodes, timeout);
  v1::CheckNodesResponse progress;
  for (const CheckPart& part : parts) progress.set_total(progress.total() + part.size());
  for (const CheckPart& part : parts) {
    if (context.IsCancelled()) return absl::CancelledError("the caller has gone");
    std::map<std::string, node_api::ProbeRequest> requests;
    for (const auto& [node, question] : part) {
      if (!failed.contains(node)) requests[node] = question.request;
    }
    AskProbes(edges_.loop, requests,
              [&](const std::string& node, const absl::StatusOr<node_api::ProbeAnswer>& answer) {
                if (!answer.ok()) {
                  failed[node] = base::MessageOf(answer.status());
                } else if (!answer->error.empty()) {
                  failed[node] = answer->error;
                } else {
                  TakeAnswer(part.at(node), *answer, seen.samples);
                }
              });
    progress.set_done(progress.done() + part.size());
    writer.Write(progress);
  }
  for (const auto& [node, why] : failed) nodes.unheard.push_back(node + ": " + why);
  seen.at = edges_.clock.Now();
  seen.window = seen.at - began;
  writer.Write(DescribeCheck(JudgeProbes(std::move(seen), nullptr), nodes.unheard));
  return absl::OkStatus();
}

}  // namespace spoke::ipam
