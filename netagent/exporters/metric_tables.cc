#include <utility>

#include "lib/telemetry/process_metrics.h"
#include "netagent/core/iptables_series.h"
#include "netagent/exporters/agent_metrics.h"

namespace spoke::netagent {
namespace {

using telemetry::MetricSpec;
using telemetry::MetricType;
using telemetry::OneOf;
using telemetry::UpTo;

// What configuration may ask for at most, and "_other".
constexpr size_t kMaxNamespaces = 65;
constexpr size_t kMaxPods = 64;
// Classes with series of their own, and "_other".
constexpr size_t kMaxClasses = 8;

std::vector<MetricSpec> TrafficMetrics() {
  return {
      {.name = "spoke_node_bytes_total",
       .type = MetricType::kCounter,
       .help = "Bytes of IP packets by the class of the far end: of pods (hook forward), of the "
               "node itself (input, output)",
       .labels = {UpTo("class", kMaxClasses), OneOf("direction", {"sent", "received"}),
                  OneOf("hook", {"forward", "input", "output"})},
       .from_source = true},
      {.name = "spoke_node_packets_total",
       .type = MetricType::kCounter,
       .help = "Packets, as above; what the device cuts or joins counts once",
       .labels = {UpTo("class", kMaxClasses), OneOf("direction", {"sent", "received"}),
                  OneOf("hook", {"forward", "input", "output"})},
       .from_source = true},
      {.name = "spoke_namespace_bytes_total",
       .type = MetricType::kCounter,
       .help = "Bytes of the pods of a namespace on this node, those that have ended included",
       .labels = {UpTo("namespace", kMaxNamespaces), UpTo("class", kMaxClasses),
                  OneOf("direction", {"sent", "received"})},
       .from_source = true},
      {.name = "spoke_pod_bytes_total",
       .type = MetricType::kCounter,
       .help = "Bytes of the pods that moved most, from when they had moved much; the rest in "
               "pod=\"_other\"",
       .labels = {UpTo("namespace", kMaxNamespaces), UpTo("pod", kMaxPods),
                  UpTo("class", kMaxClasses), OneOf("direction", {"sent", "received"})},
       .from_source = true},
      {.name = "spoke_pod_connections",
       .type = MetricType::kGauge,
       .help = "Tracked connections that pods have begun, of those with most; the others in "
               "pod=\"_other\"",
       .labels = {UpTo("namespace", kMaxPods), UpTo("pod", kMaxPods)},
       .from_source = true},
      {.name = "spoke_pod_translated_ports",
       .type = MetricType::kGauge,
       .help = "Of these, the ones that are translated to a port of the node",
       .labels = {UpTo("namespace", kMaxPods), UpTo("pod", kMaxPods)},
       .from_source = true},
      {.name = "spoke_drops_total",
       .type = MetricType::kCounter,
       .help = "Packets that the agent's rules and the guard of pods' links dropped",
       .labels = {OneOf("reason",
                        {"unknown-source", "unknown-destination", "router-message", "vlan-tag",
                         "protocol", "platform", "peer-spoke-sent", "peer-spoke-received", "leak",
                         "tunnel", "cut", "egress", "egress-limit", "pod-share"})},
       .from_source = true},
      {.name = "spoke_leak_packets_total",
       .type = MetricType::kCounter,
       .help = "Packets that were about to go where they must not, and were dropped",
       .labels = {OneOf("kind", {"peer-spoke", "untranslated"})},
       .from_source = true},
      {.name = "spoke_accounting_epoch_seconds",
       .type = MetricType::kGauge,
       .help = "When the traffic counters began at 0, in seconds since 1970",
       .from_source = true},
      {.name = "spoke_fast_path_on",
       .type = MetricType::kGauge,
       .help = "1 while packets of the cluster take the fast path",
       .from_source = true},
  };
}

std::vector<MetricSpec> ShapingMetrics() {
  return {
      {.name = "spoke_shaper_rate_bits",
       .type = MetricType::kGauge,
       .help = "Bits a second that this node's pods of a team may use",
       .labels = {UpTo("budget", kMaxLeaseSeries), UpTo("team", kMaxLeaseSeries),
                  OneOf("direction", {"ingress", "egress"})},
       .from_source = true},
      {.name = "spoke_shaper_demand_bits",
       .type = MetricType::kGauge,
       .help = "Bits a second that they could use",
       .labels = {UpTo("budget", kMaxLeaseSeries), UpTo("team", kMaxLeaseSeries),
                  OneOf("direction", {"ingress", "egress"})},
       .from_source = true},
      {.name = "spoke_shaper_usage_bits",
       .type = MetricType::kGauge,
       .help = "Bits a second that they use",
       .labels = {UpTo("budget", kMaxLeaseSeries), UpTo("team", kMaxLeaseSeries),
                  OneOf("direction", {"ingress", "egress"})},
       .from_source = true},
      {.name = "spoke_shaper_lease_age_seconds",
       .type = MetricType::kGauge,
       .help = "Since the lease was asked for",
       .labels = {UpTo("budget", kMaxLeaseSeries), UpTo("team", kMaxLeaseSeries),
                  OneOf("direction", {"ingress", "egress"})},
       .from_source = true},
      {.name = "spoke_shaper_dropped_packets_total",
       .type = MetricType::kCounter,
       .help = "Packets that found the queue full",
       .labels = {UpTo("budget", kMaxLeaseSeries + 1), OneOf("direction", {"ingress", "egress"})},
       .from_source = true},
      {.name = "spoke_shaper_throttled_seconds_total",
       .type = MetricType::kCounter,
       .help = "Time in which some flow was held back",
       .labels = {UpTo("budget", kMaxLeaseSeries + 1), OneOf("direction", {"ingress", "egress"})},
       .from_source = true},
      {.name = "spoke_shaper_throttled_bytes_total",
       .type = MetricType::kCounter,
       .help = "Bytes that were held back or dropped; in Shadow, would have been",
       .labels = {UpTo("budget", kMaxLeaseSeries + 1), OneOf("direction", {"ingress", "egress"})},
       .from_source = true},
      {.name = "spoke_shaper_mode",
       .type = MetricType::kGauge,
       .help = "Leases in each mode",
       .labels = {OneOf("mode", {"leased", "holding", "decaying", "floor", "shadow"})},
       .from_source = true},
      {.name = "spoke_shaper_flows",
       .type = MetricType::kGauge,
       .help = "Pods with a limit, by destination and direction",
       .from_source = true},
      {.name = "spoke_shaper_missing",
       .type = MetricType::kGauge,
       .help = "1 while the kernel does not take what is to be shaped",
       .from_source = true},
      {.name = "spoke_shaper_repairs_total",
       .type = MetricType::kCounter,
       .help = "Classes, filters and devices that somebody changed and that were put back",
       .from_source = true},
      {.name = "spoke_shaper_learned_addresses",
       .type = MetricType::kGauge,
       .help = "Addresses learned of host names of destination groups",
       .from_source = true},
      {.name = "spoke_shaper_shared_addresses",
       .type = MetricType::kGauge,
       .help = "Of these, addresses that other names have too",
       .from_source = true},
  };
}

std::vector<MetricSpec> ConntrackMetrics() {
  return {
      {.name = "spoke_conntrack_entries",
       .type = MetricType::kGauge,
       .help = "Connections that the kernel tracks",
       .from_source = true},
      {.name = "spoke_conntrack_limit_entries",
       .type = MetricType::kGauge,
       .help = "Connections that it can track at most",
       .from_source = true},
      {.name = "spoke_conntrack_insert_failed_total",
       .type = MetricType::kCounter,
       .help = "Connections that could not be entered, as when two took one port",
       .from_source = true},
      {.name = "spoke_conntrack_drops_total",
       .type = MetricType::kCounter,
       .help = "Packets dropped because the table was full",
       .from_source = true},
      {.name = "spoke_conntrack_passes_total",
       .type = MetricType::kCounter,
       .help = "Times that the tracked connections of released addresses were looked for",
       .from_source = true},
      {.name = "spoke_conntrack_failed_passes_total",
       .type = MetricType::kCounter,
       .help = "Of these, times that some could not be deleted",
       .from_source = true},
      {.name = "spoke_conntrack_pass_seconds_total",
       .type = MetricType::kCounter,
       .help = "Time that all of these took",
       .from_source = true},
      {.name = "spoke_conntrack_deleted_entries_total",
       .type = MetricType::kCounter,
       .help = "Tracked connections of released addresses that were deleted",
       .from_source = true},
      {.name = "spoke_conntrack_waiting_addresses",
       .type = MetricType::kGauge,
       .help = "Released addresses whose tracked connections are still to be deleted",
       .from_source = true},
      {.name = "spoke_connections_cut_total",
       .type = MetricType::kCounter,
       .help = "Connections that a policy ended while they lasted",
       .labels = {OneOf("by", {"peer-spoke", "egress"})},
       .from_source = true},
      {.name = "spoke_connection_cut_failures_total",
       .type = MetricType::kCounter,
       .help = "Times that not all of these could be ended; it is tried again",
       .from_source = true},
  };
}

std::vector<MetricSpec> NodeMetrics() {
  return {
      {.name = "spoke_lost_dels_total",
       .type = MetricType::kCounter,
       .help = "Attachments that were released because link and network namespace were gone",
       .from_source = true},
      {.name = "spoke_rules_drift_total",
       .type = MetricType::kCounter,
       .help = "Times that somebody else's change to our rules was undone",
       .labels = {OneOf("rules", {"traffic", "published"})},
       .from_source = true},
      {.name = "spoke_published_rules_missing",
       .type = MetricType::kGauge,
       .help = "Published iptables rules that could not be laid down",
       .from_source = true},
      {.name = "spoke_iptables_backends_mixed",
       .type = MetricType::kGauge,
       .help = "1 while both back ends of iptables hold rules of others",
       .from_source = true},
      {.name = "spoke_repairs_total",
       .type = MetricType::kCounter,
       .help = "Parts of attachments, and settings of the node, that were gone and put back",
       .labels = {UpTo("part", static_cast<size_t>(kLastPart) + 2)},
       .from_source = true},
      {.name = "spoke_failed_repairs_total",
       .type = MetricType::kCounter,
       .help = "Attempts to put something back that failed",
       .from_source = true},
      {.name = "spoke_node_findings",
       .type = MetricType::kGauge,
       .help = "What the checks of the node find now: blocking ones keep pods from working",
       .labels = {OneOf("severity", {"blocking", "warning"})},
       .from_source = true},
      {.name = "spoke_scrapes_refused_total",
       .type = MetricType::kCounter,
       .help = "Requests for metrics from elsewhere that were refused, by reason",
       .labels = {OneOf("reason", {"unauthorized", "limit"})},
       .from_source = true},
      {.name = "spoke_scrape_success",
       .type = MetricType::kGauge,
       .help = "1 where this scrape could read it",
       .labels = {OneOf("source", {"agent", "traffic", "conntrack"})},
       .from_source = true},
      {.name = "spoke_scrape_duration_seconds",
       .type = MetricType::kGauge,
       .help = "How long reading took for this scrape",
       .from_source = true},
      {.name = "spoke_agent_build_info",
       .type = MetricType::kGauge,
       .help = "Always 1; the label is the version",
       .labels = {UpTo("version", 1)}},
  };
}

}  // namespace

std::vector<MetricSpec> AgentMetricTable() {
  std::vector<MetricSpec> table = TrafficMetrics();
  for (MetricSpec& metric : ShapingMetrics()) table.push_back(std::move(metric));
  for (MetricSpec& metric : ConntrackMetrics()) table.push_back(std::move(metric));
  for (MetricSpec& metric : NodeMetrics()) table.push_back(std::move(metric));
  for (MetricSpec& metric : telemetry::ProcessMetricSpecs()) table.push_back(std::move(metric));
  return table;
}

std::vector<MetricSpec> CommentMetricTable() {
  return {
      {.name = "iptables_bytes_total",
       .type = MetricType::kCounter,
       .help = "Number of matched bytes",
       .labels = {OneOf("ip_version", {"4", "6"}), OneOf("table", kIptablesTables),
                  UpTo("chain", kMaxRuleSeries), UpTo("rule", kMaxRuleSeries)},
       .from_source = true},
      {.name = "iptables_packets_total",
       .type = MetricType::kCounter,
       .help = "Number of matched packets",
       .labels = {OneOf("ip_version", {"4", "6"}), OneOf("table", kIptablesTables),
                  UpTo("chain", kMaxRuleSeries), UpTo("rule", kMaxRuleSeries)},
       .from_source = true},
      {.name = "iptables_rules",
       .type = MetricType::kGauge,
       .help = "Number of rules",
       .labels = {OneOf("ip_version", {"4", "6"}), OneOf("table", kIptablesTables),
                  UpTo("chain", kMaxRuleSeries)},
       .from_source = true},
  };
}

std::vector<MetricSpec> RuleMetricTable() {
  return {
      {.name = "iptables_rule_bytes_total",
       .type = MetricType::kCounter,
       .help = "Total bytes matching a rule",
       .labels = {OneOf("table", kIptablesTables), UpTo("chain", kMaxRuleSeries),
                  UpTo("rule", kMaxRuleSeries)},
       .from_source = true},
      {.name = "iptables_rule_packets_total",
       .type = MetricType::kCounter,
       .help = "Total packets matching a rule",
       .labels = {OneOf("table", kIptablesTables), UpTo("chain", kMaxRuleSeries),
                  UpTo("rule", kMaxRuleSeries)},
       .from_source = true},
      {.name = "iptables_default_bytes_total",
       .type = MetricType::kCounter,
       .help = "Total bytes matching a chain's default policy",
       .labels = {OneOf("table", kIptablesTables), UpTo("chain", kMaxRuleSeries),
                  OneOf("policy", {"ACCEPT", "DROP"})},
       .from_source = true},
      {.name = "iptables_default_packets_total",
       .type = MetricType::kCounter,
       .help = "Total packets matching a chain's default policy",
       .labels = {OneOf("table", kIptablesTables), UpTo("chain", kMaxRuleSeries),
                  OneOf("policy", {"ACCEPT", "DROP"})},
       .from_source = true},
      {.name = "iptables_scrape_duration_seconds",
       .type = MetricType::kGauge,
       .help = "Duration of scraping iptables",
       .from_source = true},
      {.name = "iptables_scrape_success",
       .type = MetricType::kGauge,
       .help = "Whether scraping iptables succeeded",
       .from_source = true},
  };
}

}  // namespace spoke::netagent
