#include "ipam-server/telemetry/reachability_samples.h"

#include <algorithm>

namespace spoke::ipam {
namespace {

using telemetry::FromSource;
using telemetry::GaugeSpec;
using telemetry::MetricSpec;
using telemetry::OneOf;
using telemetry::Samples;

}  // namespace

std::vector<MetricSpec> ReachabilityMetricSpecs() {
  return FromSource(
      {GaugeSpec("spoke_ipam_reachability_nodes",
                 "Nodes that probe each other, and those of them whose network loses packets",
                 {OneOf("state", {"all", "suspected"})}),
       GaugeSpec("spoke_ipam_reachability_pairs_suspected",
                 "Pairs of nodes that do not reach each other though both reach others"),
       GaugeSpec("spoke_ipam_reachability_probes",
                 "Probes between nodes of the last minutes (reachability.window)",
                 {OneOf("result", {"answered", "lost"})}),
       GaugeSpec("spoke_ipam_reachability_round_trip_seconds",
                 "How long answered probes of these minutes took",
                 {OneOf("quantile", {"0.5", "0.99"})}),
       GaugeSpec("spoke_ipam_reachability_unjudged",
                 "1 while so many probes are lost that no node can be told from others, else 0")});
}

std::vector<Samples> ReachabilitySamples(const Reachability* reachability) {
  if (reachability == nullptr) return {};
  const auto number = [](uint64_t count) { return static_cast<double>(count); };
  const auto suspected =
      std::count_if(reachability->nodes.begin(), reachability->nodes.end(),
                    [](const NodeReach& node) { return !node.suspicion.empty(); });
  const ProbeTally& all = reachability->all;
  return {{.metric = "spoke_ipam_reachability_nodes",
           .series = {{{"all"}, number(reachability->nodes.size())},
                      {{"suspected"}, static_cast<double>(suspected)}}},
          {.metric = "spoke_ipam_reachability_pairs_suspected",
           .series = {{{}, number(reachability->pairs.size())}}},
          {.metric = "spoke_ipam_reachability_probes",
           .series = {{{"answered"}, number(all.probes - all.lost)}, {{"lost"}, number(all.lost)}}},
          {.metric = "spoke_ipam_reachability_round_trip_seconds",
           .series = {{{"0.5"}, all.p50_us * 1e-6}, {{"0.99"}, all.p99_us * 1e-6}}},
          {.metric = "spoke_ipam_reachability_unjudged",
           .series = {{{}, reachability->unjudged.empty() ? 0.0 : 1.0}}}};
}

}  // namespace spoke::ipam
