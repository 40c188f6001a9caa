#include "netagent/agent_state.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/time/time.h"
#include "fmt/core.h"

namespace spoke::netagent {
namespace {

using Json = nlohmann::ordered_json;

std::string TimeText(absl::Time time) {
  if (time == absl::InfinitePast() || time == absl::InfiniteFuture()) return "";
  return absl::FormatTime("%Y-%m-%d%ET%H:%M:%SZ", time, absl::UTCTimeZone());
}

Json TextsOf(const std::vector<ip::Address>& addresses) {
  Json list = Json::array();
  for (const ip::Address& address : addresses) list.push_back(address.ToString());
  return list;
}

Json PoolsOf(const Assignments& assignments) {
  Json pools = Json::object();
  for (const auto& [pool, counts] : assignments.CountByPool()) {
    pools[pool] = {{"available", counts.available}, {"in_use", counts.in_use},
                   {"cooldown", counts.cooldown},   {"unusable", counts.unusable},
                   {"on_nic", counts.on_nic},       {"unproven", counts.unproven}};
  }
  return pools;
}

Json PodsOf(const std::vector<Assignment>& assignments) {
  Json pods = Json::array();
  for (const Assignment& assignment : assignments) {
    pods.push_back({{"namespace", assignment.pod.pod_namespace},
                    {"name", assignment.pod.name},
                    {"container_id", assignment.key.container_id},
                    {"ifname", assignment.key.ifname},
                    {"addresses", TextsOf(assignment.addresses)},
                    {"generation", assignment.generation},
                    {"since", TimeText(assignment.since)}});
  }
  return pods;
}

}  // namespace

std::string StateText(const AgentState& state) {
  Json findings = Json::array();
  for (const node_api::NodeFinding& finding : state.findings) {
    findings.push_back({{"check", finding.check},
                        {"blocking", finding.blocking},
                        {"object", finding.object},
                        {"what", finding.what}});
  }
  Json maintenance = Json::array();
  for (const node_api::MaintenanceEvent& event :
       state.maintenance.value_or(node_api::Maintenance()).events) {
    maintenance.push_back({{"event", event.id},
                           {"kind", NameOf(event.kind)},
                           {"started", event.started},
                           {"not_before", TimeText(event.not_before)}});
  }
  std::vector<ip::Address> in_conflict;
  for (const ConflictNoted& conflict : state.assignments.Conflicts()) {
    in_conflict.push_back(conflict.address);
  }
  const Json document = {{"node", state.identity.node_name},
                         {"vm_id", state.identity.vm_id},
                         {"boot_id", state.identity.boot_id},
                         {"instance", state.identity.instance},
                         {"version", state.version},
                         {"not_serving", state.not_serving},
                         {"pools", PoolsOf(state.assignments)},
                         {"pods", PodsOf(state.assignments.Built())},
                         {"unfinished", PodsOf(state.assignments.Unfinished())},
                         {"cooldown", TextsOf(state.assignments.Cooldown())},
                         {"withdrawn", TextsOf(state.assignments.Withdrawn())},
                         {"unproven", TextsOf(state.assignments.Unproven())},
                         {"in_conflict", TextsOf(in_conflict)},
                         {"findings", std::move(findings)},
                         {"maintenance", std::move(maintenance)}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

node_api::NodeDataAnswer AnswerNodeData(const node_api::NodeDataRequest& request,
                                        const NodeDataParts& parts) {
  node_api::NodeDataAnswer answer{.id = request.id};
  std::string names;
  for (const auto& [name, text] : parts) names += (names.empty() ? "" : ", ") + name;
  for (const std::string& name : request.parts) {
    if (parts.contains(name)) continue;
    answer.error = fmt::format("this agent has no part {}; there are: {}", name, names);
    return answer;
  }
  for (const auto& [name, text] : parts) {
    const bool wanted =
        request.parts.empty() ||
        std::find(request.parts.begin(), request.parts.end(), name) != request.parts.end();
    if (wanted) answer.parts.push_back({.name = name, .text = text()});
  }
  return answer;
}

}  // namespace spoke::netagent
