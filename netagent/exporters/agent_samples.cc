#include <algorithm>
#include <string>
#include <utility>

#include "netagent/exporters/agent_metrics.h"
#include "netagent/exporters/connection_series.h"
#include "netagent/links/link_plan.h"

namespace spoke::netagent {
namespace {

using telemetry::Samples;

// Adds the series of one metric, written down shortly.
template <typename Number>
void Add(std::vector<Samples>& out, std::string metric, Number value) {
  out.push_back({.metric = std::move(metric), .series = {{{}, static_cast<double>(value)}}});
}

// Returns the reason as the table has it; an egress policy's name is no label, since there may be
// many.
std::string ReasonOf(const std::string& counter) {
  for (const char* reason :
       {"unknown-source", "unknown-destination", "router-message", "vlan-tag", "protocol",
        "platform", "peer-spoke-sent", "peer-spoke-received", "leak", "tunnel", "cut"}) {
    if (counter == reason) return reason;
  }
  if (counter.starts_with("pod-share-")) return "pod-share";
  if (counter.starts_with("egress-limit-")) return "egress-limit";
  if (counter.starts_with("egress-")) return "egress";
  return "other";
}

void AddDrops(std::vector<Samples>& out, const TrafficTotals& totals) {
  std::map<std::string, uint64_t> drops = {{"unknown-source", 0}, {"leak", 0}};
  std::map<std::string, uint64_t> leaks = {{"peer-spoke", 0}, {"untranslated", 0}};
  for (const auto& [counter, dropped] : totals.drops) {
    const std::string reason = ReasonOf(counter);
    drops[reason] += dropped.packets;
    if (reason.starts_with("peer-spoke")) leaks["peer-spoke"] += dropped.packets;
    if (reason == "leak") leaks["untranslated"] += dropped.packets;
  }
  Samples by_reason{.metric = "spoke_drops_total"};
  for (const auto& [reason, packets] : drops) {
    by_reason.series.push_back({{reason}, static_cast<double>(packets)});
  }
  Samples by_kind{.metric = "spoke_leak_packets_total"};
  for (const auto& [kind, packets] : leaks) {
    by_kind.series.push_back({{kind}, static_cast<double>(packets)});
  }
  out.push_back(std::move(by_reason));
  out.push_back(std::move(by_kind));
}

void AddRepairs(std::vector<Samples>& out, const RepairCounts& counts) {
  Samples repairs{.metric = "spoke_repairs_total",
                  .series = {{{"node_setting"}, static_cast<double>(counts.node_settings)}}};
  uint64_t failed = 0;
  for (size_t i = 0; i < counts.parts.size(); ++i) {
    failed += counts.parts[i].failed;
    // Most parts are never lost; those that were once stay.
    if (counts.parts[i].repaired == 0) continue;
    repairs.series.push_back({{std::string(NameOf(static_cast<Part>(i)))},
                              static_cast<double>(counts.parts[i].repaired)});
  }
  out.push_back(std::move(repairs));
  Add(out, "spoke_failed_repairs_total", failed);
}

Samples SamplesOf(const AddCounts& counts) {
  Samples out{.metric = "spoke_add_duration_seconds"};
  for (const auto& [step, durations] : {std::pair("total", &counts.total),
                                        {"wait", &counts.wait},
                                        {"kernel", &counts.kernel},
                                        {"traffic", &counts.traffic}}) {
    out.series.push_back({.labels = {step},
                          .value = absl::ToDoubleSeconds(durations->sum),
                          .counts = {durations->counts.begin(), durations->counts.end()}});
  }
  return out;
}

void AddAdds(std::vector<Samples>& out, const AddCounts& counts) {
  Samples outcomes{.metric = "spoke_adds_total"};
  for (size_t i = 0; i < counts.outcomes.size(); ++i) {
    outcomes.series.push_back({{std::string(NameOf(static_cast<AddOutcome>(i)))},
                               static_cast<double>(counts.outcomes[i])});
  }
  out.push_back(std::move(outcomes));
  out.push_back(SamplesOf(counts));
}

void AddClearing(std::vector<Samples>& out, const ConnectionClearingCounts& counts) {
  Add(out, "spoke_conntrack_passes_total", counts.passes);
  Add(out, "spoke_conntrack_failed_passes_total", counts.failed);
  Add(out, "spoke_conntrack_pass_seconds_total", absl::ToDoubleSeconds(counts.took));
  Add(out, "spoke_conntrack_deleted_entries_total", counts.deleted);
  Add(out, "spoke_conntrack_waiting_addresses", counts.waiting);
}

void AddCuts(std::vector<Samples>& out, const EstablishedCutCounts& counts) {
  out.push_back({.metric = "spoke_connections_cut_total",
                 .series = {{{"peer-spoke"}, static_cast<double>(counts.peer_spoke)},
                            {{"egress"}, static_cast<double>(counts.egress)}}});
  Add(out, "spoke_connection_cut_failures_total", counts.failed);
}

void AddTraffic(std::vector<Samples>& out, const TrafficTotals& totals, TrafficSeries& series) {
  for (Samples& samples : series.Update(totals)) out.push_back(std::move(samples));
  AddDrops(out, totals);
  Add(out, "spoke_accounting_epoch_seconds",
      absl::FDivDuration(totals.epoch - absl::UnixEpoch(), absl::Seconds(1)));
  Add(out, "spoke_fast_path_on", totals.fast_path ? 1 : 0);
  Add(out, "spoke_fast_path_over_share_pods", totals.over_share_pods);
}

std::string NameOf(TrafficDirection direction) {
  return direction == TrafficDirection::kIngress ? "ingress" : "egress";
}

std::string ModeOf(const ShapingState::Grant& row) {
  if (row.shadow) return "shadow";
  switch (row.grant.mode) {
    case GrantMode::kFloor:
      return "floor";
    case GrantMode::kGranted:
      return "granted";
    case GrantMode::kHolding:
      return "holding";
    case GrantMode::kDecaying:
      return "decaying";
  }
  return "floor";
}

void AddGrants(std::vector<Samples>& out, std::vector<ShapingState::Grant> grants) {
  std::map<std::string, double> modes;
  for (const auto& row : grants) ++modes[ModeOf(row)];
  Samples by_mode{.metric = "spoke_shaper_mode"};
  for (const auto& [mode, count] : modes) by_mode.series.push_back({{mode}, count});
  out.push_back(std::move(by_mode));
  std::stable_sort(grants.begin(), grants.end(),
                   [](const auto& a, const auto& b) { return a.usage > b.usage; });
  grants.resize(std::min(grants.size(), kMaxGrantSeries));
  Samples rate{.metric = "spoke_shaper_rate_bits"};
  Samples demand{.metric = "spoke_shaper_demand_bits"};
  Samples usage{.metric = "spoke_shaper_usage_bits"};
  Samples age{.metric = "spoke_shaper_grant_age_seconds"};
  for (const auto& row : grants) {
    const std::vector<std::string> labels = {row.grant.budget, row.grant.team,
                                             NameOf(row.direction)};
    rate.series.push_back({labels, static_cast<double>(row.grant.rate.count())});
    demand.series.push_back({labels, static_cast<double>(row.demand.count())});
    usage.series.push_back({labels, static_cast<double>(row.usage.count())});
    age.series.push_back({labels, absl::ToDoubleSeconds(row.grant.age)});
  }
  for (Samples* samples : {&rate, &demand, &usage, &age}) out.push_back(std::move(*samples));
}

void AddShaping(std::vector<Samples>& out, const ShapingState& state) {
  AddGrants(out, state.grants);
  Samples dropped{.metric = "spoke_shaper_dropped_packets_total"};
  Samples seconds{.metric = "spoke_shaper_throttled_seconds_total"};
  Samples bytes{.metric = "spoke_shaper_throttled_bytes_total"};
  for (const auto& [of, totals] : state.totals) {
    if (dropped.series.size() == kMaxGrantSeries) break;
    const std::vector<std::string> labels = {of.first, NameOf(of.second)};
    dropped.series.push_back({labels, static_cast<double>(totals.dropped_packets)});
    seconds.series.push_back({labels, absl::ToDoubleSeconds(totals.throttled_for)});
    bytes.series.push_back({labels, static_cast<double>(totals.throttled.count())});
  }
  for (Samples* samples : {&dropped, &seconds, &bytes}) out.push_back(std::move(*samples));
  Add(out, "spoke_shaper_flows", state.flows);
  Add(out, "spoke_shaper_missing", state.missing.empty() ? 0 : 1);
  Add(out, "spoke_shaper_repairs_total", state.repaired);
  Add(out, "spoke_shaper_learned_addresses", state.learned_addresses);
}

}  // namespace

std::vector<Samples> AgentSamples(const ScrapeReading& reading, TrafficSeries& series) {
  std::vector<Samples> out;
  const bool has_traffic = reading.agent.ok() && reading.agent->traffic.ok();
  Samples drift{.metric = "spoke_rules_drift_total",
                .series = {{{"published"}, static_cast<double>(reading.published.repaired)}}};
  if (has_traffic) {
    AddTraffic(out, *reading.agent->traffic, series);
    drift.series.push_back(
        {{"traffic"}, static_cast<double>(reading.agent->traffic->drift_repaired)});
  }
  out.push_back(std::move(drift));
  if (reading.agent.ok()) {
    AddAdds(out, reading.agent->adds);
    AddRepairs(out, reading.agent->repairs);
    Add(out, "spoke_lost_dels_total", reading.agent->lost_dels.released);
  }
  if (reading.agent.ok() && reading.agent->clearing) AddClearing(out, *reading.agent->clearing);
  if (reading.agent.ok() && reading.agent->connections) {
    for (Samples& samples : ConnectionSeries(*reading.agent->connections, series.limits().pods)) {
      out.push_back(std::move(samples));
    }
  }
  if (reading.agent.ok() && reading.agent->cuts) AddCuts(out, *reading.agent->cuts);
  if (reading.agent.ok() && reading.agent->shaping) AddShaping(out, *reading.agent->shaping);
  if (reading.agent.ok() && reading.agent->dns_names) {
    Add(out, "spoke_shaper_shared_addresses", reading.agent->dns_names->shared);
  }
  if (reading.conntrack.ok()) {
    Add(out, "spoke_conntrack_entries", reading.conntrack->entries);
    Add(out, "spoke_conntrack_limit_entries", reading.conntrack->limit);
    Add(out, "spoke_conntrack_insert_failed_total", reading.conntrack->insert_failed);
    Add(out, "spoke_conntrack_drops_total", reading.conntrack->dropped);
  }
  out.push_back({.metric = "spoke_node_findings",
                 .series = {{{"blocking"}, static_cast<double>(reading.node.blocking)},
                            {{"warning"}, static_cast<double>(reading.node.warnings)}}});
  out.push_back({.metric = "spoke_scrapes_refused_total",
                 .series = {{{"unauthorized"}, static_cast<double>(reading.refused.unauthorized)},
                            {{"limit"}, static_cast<double>(reading.refused.limit)}}});
  Add(out, "spoke_published_rules_missing", reading.published.missing);
  Add(out, "spoke_iptables_backends_mixed", reading.published.both_backends ? 1 : 0);
  out.push_back({.metric = "spoke_scrape_success",
                 .series = {{{"agent"}, reading.agent.ok() ? 1.0 : 0.0},
                            {{"traffic"}, has_traffic ? 1.0 : 0.0},
                            {{"conntrack"}, reading.conntrack.ok() ? 1.0 : 0.0}}});
  Add(out, "spoke_scrape_duration_seconds", absl::ToDoubleSeconds(reading.took));
  return out;
}

}  // namespace spoke::netagent
