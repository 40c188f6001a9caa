// What agents' checks find of their nodes. Nothing that is decided of addresses depends on it.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "fmt/core.h"
#include "ipam-server/loop/fleet_loop.h"

namespace spoke::ipam {
namespace {

using node_api::NodeFinding;

bool IsAmong(const NodeFinding& finding, const std::vector<NodeFinding>& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [&](const NodeFinding& other) { return finding.IsAbout(other); });
}

// Logs what keeps pods from working and is new, and what of that is over. Agents log the rest.
void LogBlocking(const std::string& node, const std::vector<NodeFinding>& before,
                 const std::vector<NodeFinding>& now, telemetry::Log& log) {
  for (const NodeFinding& finding : now) {
    if (!finding.blocking || IsAmong(finding, before)) continue;
    log.Warn("node_blocked", {{"node", node},
                              {"check", finding.check},
                              {"object", finding.object},
                              {"what", finding.what},
                              {"remedy", finding.remedy}});
  }
  for (const NodeFinding& finding : before) {
    if (!finding.blocking || IsAmong(finding, now)) continue;
    log.Info("node_blocked_over",
             {{"node", node}, {"check", finding.check}, {"object", finding.object}});
  }
}

}  // namespace

void FleetLoop::Handle(NodeFindingsEvent event, Batch& batch) {
  Session* session = TouchSession(event.session, batch);
  if (session == nullptr) return;
  const std::string& node = NodeOf(event.session)->name;
  std::vector<NodeFinding>& findings = event.findings.findings;
  LogBlocking(node, session->findings, findings, edges_.log);
  session->warnings = WarningsOf(findings, session->warnings, batch.now);
  session->findings = std::move(findings);
  const bool blocked = std::any_of(session->findings.begin(), session->findings.end(),
                                   [](const NodeFinding& finding) { return finding.blocking; });
  if (blocked ? blocked_nodes_.insert(node).second : blocked_nodes_.erase(node) > 0) TellBlocked();
}

void FleetLoop::ForgetFindings(const NodeKey& node) {
  if (blocked_nodes_.erase(node.name) > 0) TellBlocked();
}

void FleetLoop::TellBlocked() {
  const size_t count = blocked_nodes_.size();
  SetProblem("node_checks",
             count == 0
                 ? std::string()
                 : fmt::format("{} {} what keeps pods from working, {} for one. See: spokectl "
                               "explain node {}",
                               count, count == 1 ? "node has" : "nodes have",
                               *blocked_nodes_.begin(), *blocked_nodes_.begin()));
}

}  // namespace spoke::ipam
