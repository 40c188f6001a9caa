#include "ipam-server/session/pod_traces.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fmt/core.h"
#include "ipam-server/history/history_query.h"
#include "ipam-server/loop/loop_call.h"
#include "lib/base/status.h"
#include "lib/base/time_text.h"

namespace spoke::ipam {
namespace {

v1::AddTrace Describe(const std::string& node, const node_api::AttachTrace& trace) {
  v1::AddTrace out;
  out.set_node(node);
  out.set_pod_namespace(trace.pod_namespace);
  out.set_pod_name(trace.pod_name);
  out.set_container_id(trace.container_id);
  out.set_ifname(trace.ifname);
  for (const ip::Address& address : trace.addresses) out.add_addresses(address.ToString());
  out.set_trace_id(trace.trace_id);
  out.set_since_unix_ms(absl::ToUnixMillis(trace.since));
  out.set_error(trace.error);
  for (const node_api::AttachStep& step : trace.steps) {
    v1::AddTrace::Step& line = *out.add_steps();
    line.set_name(step.name);
    line.set_begin_us(static_cast<uint64_t>(absl::ToInt64Microseconds(step.begin)));
    line.set_took_us(static_cast<uint64_t>(absl::ToInt64Microseconds(step.took)));
  }
  return out;
}

// Returns where the pod last had an address, and says so in `response` as well.
std::set<std::string> LastNodeOf(Store& store, const std::string& pod_namespace,
                                 const std::string& pod_name, v1::ExplainResponse& response) {
  const auto last = LastAssignmentTo(store, pod_namespace, pod_name);
  if (!last.ok()) {
    response.add_without_adds(
        fmt::format("the history cannot be read: {}", base::MessageOf(last.status())));
    return {};
  }
  if (!*last) {
    response.add_without_adds(
        "no assignment to the pod is remembered, so its node is not known: name it with --node");
    return {};
  }
  const HistoryEntry& entry = **last;
  response.add_details(fmt::format("it last had {} on node {}, assigned at {}, container {}, {}",
                                   entry.address.ToString(), entry.node, base::ClockText(entry.at),
                                   entry.container_id, entry.ifname));
  return {entry.node};
}

}  // namespace

void AddPodTraces(FleetLoop& loop, Store& store, absl::Duration patience,
                  const v1::ExplainRequest& request, v1::ExplainResponse& response) {
  const size_t slash = request.pod().find('/');
  const std::string pod_namespace = request.pod().substr(0, slash);
  const std::string pod_name = request.pod().substr(slash + 1);
  std::set<std::string> nodes;
  if (!request.on_node().empty()) {
    nodes = {request.on_node()};
  } else if (response.nodes().empty()) {
    nodes = LastNodeOf(store, pod_namespace, pod_name, response);
  }
  for (const std::string& node : response.nodes()) {
    if (request.on_node().empty() && nodes.size() < kMaxTracedNodes) nodes.insert(node);
  }

  std::vector<v1::AddTrace> adds;
  for (const auto& [node, answer] : AskTraces(loop, patience, nodes, pod_namespace, pod_name)) {
    if (!answer.ok()) {
      response.add_without_adds(std::string(base::MessageOf(answer.status())));
      continue;
    }
    std::set<std::string> interfaces;
    for (const node_api::AttachTrace& trace : answer->traces) {
      // An agent that does not look for the pod alone is of no use, and harmless.
      if (trace.pod_namespace != pod_namespace || trace.pod_name != pod_name) continue;
      if (interfaces.insert(trace.ifname).second) adds.push_back(Describe(node, trace));
    }
    if (interfaces.empty()) {
      response.add_without_adds(fmt::format(
          "the agent of node {} remembers no ADD of the pod: it keeps the last few hundred, and "
          "none from before it was started",
          node));
    }
  }
  std::stable_sort(adds.begin(), adds.end(), [](const v1::AddTrace& a, const v1::AddTrace& b) {
    return a.since_unix_ms() > b.since_unix_ms();
  });
  for (v1::AddTrace& add : adds) *response.add_adds() = std::move(add);
}

}  // namespace spoke::ipam
