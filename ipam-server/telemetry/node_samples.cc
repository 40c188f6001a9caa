#include "ipam-server/telemetry/node_samples.h"

#include <string>
#include <utility>

namespace spoke::ipam {
namespace {

using telemetry::CounterSpec;
using telemetry::FromSource;
using telemetry::GaugeSpec;
using telemetry::MetricSpec;
using telemetry::OneOf;
using telemetry::Samples;

std::vector<std::string> ResultNames() {
  std::vector<std::string> names;
  for (size_t i = 0; i < kWriteResults; ++i) {
    names.emplace_back(NameOf(static_cast<WriteResult>(i)));
  }
  return names;
}

}  // namespace

std::vector<MetricSpec> KubernetesMetricSpecs() {
  return FromSource(
      {GaugeSpec("spoke_ipam_kubernetes_usable",
                 "1 while the Kubernetes API tells of nodes and takes writes, else 0"),
       GaugeSpec("spoke_ipam_kubernetes_nodes",
                 "Nodes of the Kubernetes cluster by what is seen there; a node may be several",
                 {OneOf("state", {"all", "joining", "unfit", "tainted", "held_back"})}),
       GaugeSpec("spoke_ipam_kubernetes_waiting_nodes",
                 "Nodes whose taints and conditions wait for their turn to be written"),
       CounterSpec("spoke_ipam_kubernetes_writes_total",
                   "Writes of taints and conditions of nodes, by result",
                   {OneOf("result", ResultNames())}),
       CounterSpec("spoke_ipam_kubernetes_lists_total", "Lists of all nodes that were completed"),
       CounterSpec("spoke_ipam_kubernetes_watches_total", "Watches of nodes that were begun"),
       CounterSpec("spoke_ipam_kubernetes_forgotten_total",
                   "How often the API server had forgotten where a list or watch was")});
}

std::vector<Samples> KubernetesSamples(const NodesStanding& standing) {
  const auto number = [](uint64_t count) { return static_cast<double>(count); };
  Samples writes{.metric = "spoke_ipam_kubernetes_writes_total", .series = {}};
  for (size_t i = 0; i < kWriteResults; ++i) {
    writes.series.push_back(
        {{std::string(NameOf(static_cast<WriteResult>(i)))}, number(standing.writes[i])});
  }
  return {
      {.metric = "spoke_ipam_kubernetes_usable", .series = {{{}, standing.usable ? 1.0 : 0.0}}},
      {.metric = "spoke_ipam_kubernetes_nodes",
       .series = {{{"all"}, number(standing.nodes)},
                  {{"joining"}, number(standing.joining)},
                  {{"unfit"}, number(standing.unfit)},
                  {{"tainted"}, number(standing.tainted)},
                  {{"held_back"}, number(standing.held_back)}}},
      {.metric = "spoke_ipam_kubernetes_waiting_nodes", .series = {{{}, number(standing.waiting)}}},
      std::move(writes),
      {.metric = "spoke_ipam_kubernetes_lists_total", .series = {{{}, number(standing.lists)}}},
      {.metric = "spoke_ipam_kubernetes_watches_total", .series = {{{}, number(standing.watches)}}},
      {.metric = "spoke_ipam_kubernetes_forgotten_total",
       .series = {{{}, number(standing.forgotten)}}}};
}

}  // namespace spoke::ipam
