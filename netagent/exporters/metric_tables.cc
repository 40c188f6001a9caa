#include <utility>

#include "lib/rpc/certificate_metrics.h"
#include "lib/telemetry/process_metrics.h"
#include "netagent/exporters/agent_metrics.h"
#include "netagent/exporters/iptables_series.h"

namespace spoke::netagent {
namespace {

using telemetry::CounterSpec;
using telemetry::FromSource;
using telemetry::GaugeSpec;
using telemetry::HistogramSpec;
using telemetry::MetricSpec;
using telemetry::OneOf;
using telemetry::UpTo;

// The most namespaces that configuration may ask for, and "_other".
constexpr size_t kMaxNamespaces = 65;
constexpr size_t kMaxPods = 64;
// The most classes with series of their own, and "_other".
constexpr size_t kMaxClasses = 8;

std::vector<MetricSpec> TrafficMetrics() {
  return FromSource(
      {CounterSpec(
           "spoke_node_bytes_total",
           "Bytes of IP packets by the class of the far end: of pods (hook forward), of the "
           "node itself (input, output)",
           {UpTo("class", kMaxClasses), OneOf("direction", {"sent", "received"}),
            OneOf("hook", {"forward", "input", "output"})}),
       CounterSpec("spoke_node_packets_total",
                   "Packets, as above; what the device cuts or joins counts once",
                   {UpTo("class", kMaxClasses), OneOf("direction", {"sent", "received"}),
                    OneOf("hook", {"forward", "input", "output"})}),
       CounterSpec("spoke_namespace_bytes_total",
                   "Bytes of the pods of a namespace on this node, those that have ended included",
                   {UpTo("namespace", kMaxNamespaces), UpTo("class", kMaxClasses),
                    OneOf("direction", {"sent", "received"})}),
       CounterSpec("spoke_pod_bytes_total",
                   "Bytes of the pods that moved most, from when they had moved much; the rest in "
                   "pod=\"_other\"",
                   {UpTo("namespace", kMaxNamespaces), UpTo("pod", kMaxPods),
                    UpTo("class", kMaxClasses), OneOf("direction", {"sent", "received"})}),
       GaugeSpec("spoke_pod_connections",
                 "Tracked connections that pods have begun, of those with most; the others in "
                 "pod=\"_other\"",
                 {UpTo("namespace", kMaxPods), UpTo("pod", kMaxPods)}),
       GaugeSpec("spoke_pod_translated_ports",
                 "Of these, the ones that are translated to a port of the node",
                 {UpTo("namespace", kMaxPods), UpTo("pod", kMaxPods)}),
       CounterSpec(
           "spoke_drops_total",
           "Packets that the agent's rules and the guard of pods' links dropped",
           {OneOf("reason", {"unknown-source", "unknown-destination", "router-message", "vlan-tag",
                             "protocol", "platform", "peer-spoke-sent", "peer-spoke-received",
                             "leak", "tunnel", "cut", "egress", "egress-limit", "pod-share"})}),
       CounterSpec("spoke_leak_packets_total",
                   "Packets that were about to go where they must not, and were dropped",
                   {OneOf("kind", {"peer-spoke", "untranslated"})}),
       GaugeSpec("spoke_accounting_epoch_seconds",
                 "When the traffic counters began at 0, in seconds since 1970"),
       GaugeSpec("spoke_fast_path_on", "1 while packets of the cluster take the fast path"),
       GaugeSpec("spoke_fast_path_over_share_pods",
                 "Pods that left the fast path: they reach too many endpoints through Services")});
}

std::vector<MetricSpec> ShapingMetrics() {
  return FromSource(
      {GaugeSpec("spoke_shaper_rate_bits", "Bits a second that this node's pods of a team may use",
                 {UpTo("budget", kMaxGrantSeries), UpTo("team", kMaxGrantSeries),
                  OneOf("direction", {"ingress", "egress"})}),
       GaugeSpec("spoke_shaper_demand_bits", "Bits a second that they could use",
                 {UpTo("budget", kMaxGrantSeries), UpTo("team", kMaxGrantSeries),
                  OneOf("direction", {"ingress", "egress"})}),
       GaugeSpec("spoke_shaper_usage_bits", "Bits a second that they use",
                 {UpTo("budget", kMaxGrantSeries), UpTo("team", kMaxGrantSeries),
                  OneOf("direction", {"ingress", "egress"})}),
       GaugeSpec("spoke_shaper_grant_age_seconds", "Since the grant was asked for",
                 {UpTo("budget", kMaxGrantSeries), UpTo("team", kMaxGrantSeries),
                  OneOf("direction", {"ingress", "egress"})}),
       CounterSpec(
           "spoke_shaper_dropped_packets_total", "Packets that found the queue full",
           {UpTo("budget", kMaxGrantSeries + 1), OneOf("direction", {"ingress", "egress"})}),
       CounterSpec(
           "spoke_shaper_throttled_seconds_total", "Time in which some flow was held back",
           {UpTo("budget", kMaxGrantSeries + 1), OneOf("direction", {"ingress", "egress"})}),
       CounterSpec(
           "spoke_shaper_throttled_bytes_total",
           "Bytes that were held back or dropped; in Shadow, would have been",
           {UpTo("budget", kMaxGrantSeries + 1), OneOf("direction", {"ingress", "egress"})}),
       GaugeSpec("spoke_shaper_mode", "Grants in each mode",
                 {OneOf("mode", {"granted", "holding", "decaying", "floor", "shadow"})}),
       GaugeSpec("spoke_shaper_flows", "Pods with a limit, by destination and direction"),
       GaugeSpec("spoke_shaper_missing", "1 while the kernel does not take what is to be shaped"),
       CounterSpec("spoke_shaper_repairs_total",
                   "Classes, filters and devices that somebody changed and that were put back"),
       GaugeSpec("spoke_shaper_learned_addresses",
                 "Addresses learned of host names of destination groups"),
       GaugeSpec("spoke_shaper_shared_addresses",
                 "Of these, addresses that other names have too")});
}

std::vector<MetricSpec> ConntrackMetrics() {
  return FromSource(
      {GaugeSpec("spoke_conntrack_entries", "Connections that the kernel tracks"),
       GaugeSpec("spoke_conntrack_limit_entries", "Connections that it can track at most"),
       CounterSpec("spoke_conntrack_insert_failed_total",
                   "Connections that could not be entered, as when two took one port"),
       CounterSpec("spoke_conntrack_drops_total", "Packets dropped because the table was full"),
       CounterSpec("spoke_conntrack_passes_total",
                   "Times that the tracked connections of released addresses were looked for"),
       CounterSpec("spoke_conntrack_failed_passes_total",
                   "Of these, times that some could not be deleted"),
       CounterSpec("spoke_conntrack_pass_seconds_total", "Time that all of these took"),
       CounterSpec("spoke_conntrack_deleted_entries_total",
                   "Tracked connections of released addresses that were deleted"),
       GaugeSpec("spoke_conntrack_waiting_addresses",
                 "Released addresses whose tracked connections are still to be deleted"),
       CounterSpec("spoke_connections_cut_total",
                   "Connections that a policy ended while they lasted",
                   {OneOf("by", {"peer-spoke", "egress"})}),
       CounterSpec("spoke_connection_cut_failures_total",
                   "Times that not all of these could be ended; it is tried again")});
}

std::vector<MetricSpec> NodeMetrics() {
  return FromSource(
      {CounterSpec("spoke_lost_dels_total",
                   "Attachments that were released because link and network namespace were gone"),
       CounterSpec("spoke_rules_drift_total",
                   "Times that somebody else's change to our rules was undone",
                   {OneOf("rules", {"traffic", "published"})}),
       GaugeSpec("spoke_published_rules_missing",
                 "Published iptables rules that could not be laid down"),
       GaugeSpec("spoke_iptables_backends_mixed",
                 "1 while both back ends of iptables hold rules of others"),
       CounterSpec("spoke_repairs_total",
                   "Parts of attachments, and settings of the node, that were gone and put back",
                   {UpTo("part", static_cast<size_t>(kLastPart) + 2)}),
       CounterSpec("spoke_failed_repairs_total", "Attempts to put something back that failed"),
       GaugeSpec("spoke_node_findings",
                 "What the checks of the node find now: blocking ones keep pods from working",
                 {OneOf("severity", {"blocking", "warning"})}),
       CounterSpec("spoke_scrapes_refused_total",
                   "Requests for metrics from elsewhere that were refused, by reason",
                   {OneOf("reason", {"unauthorized", "limit"})}),
       GaugeSpec("spoke_scrape_success", "1 where this scrape could read it",
                 {OneOf("source", {"agent", "traffic", "conntrack"})}),
       GaugeSpec("spoke_scrape_duration_seconds", "How long reading took for this scrape")});
}

std::vector<MetricSpec> AddMetrics() {
  return FromSource(
      {CounterSpec("spoke_adds_total", "Pods' ADDs, by how they ended",
                   {OneOf("outcome", {"attached", "no_address", "failed", "given_up"})}),
       HistogramSpec("spoke_add_duration_seconds",
                     "Time from the arrival of an ADD to its answer, and that of its steps which "
                     "can take long; of those that were attached",
                     {DurationCounts::kBuckets.begin(), DurationCounts::kBuckets.end()},
                     {OneOf("step", {"total", "wait", "kernel", "traffic"})})});
}

}  // namespace

std::vector<MetricSpec> AgentMetricTable() {
  std::vector<MetricSpec> table = {GaugeSpec(
      "spoke_agent_build_info", "Always 1; the label is the version", {UpTo("version", 1)})};
  for (auto part : {TrafficMetrics(), ShapingMetrics(), ConntrackMetrics(), NodeMetrics(),
                    AddMetrics(), rpc::CertificateMetricSpecs(), telemetry::ProcessMetricSpecs()}) {
    for (MetricSpec& metric : part) table.push_back(std::move(metric));
  }
  return table;
}

std::vector<MetricSpec> CommentMetricTable() {
  return FromSource({CounterSpec("iptables_bytes_total", "Number of matched bytes",
                                 {OneOf("ip_version", {"4", "6"}), OneOf("table", kIptablesTables),
                                  UpTo("chain", kMaxRuleSeries), UpTo("rule", kMaxRuleSeries)}),
                     CounterSpec("iptables_packets_total", "Number of matched packets",
                                 {OneOf("ip_version", {"4", "6"}), OneOf("table", kIptablesTables),
                                  UpTo("chain", kMaxRuleSeries), UpTo("rule", kMaxRuleSeries)}),
                     GaugeSpec("iptables_rules", "Number of rules",
                               {OneOf("ip_version", {"4", "6"}), OneOf("table", kIptablesTables),
                                UpTo("chain", kMaxRuleSeries)})});
}

std::vector<MetricSpec> RuleMetricTable() {
  return FromSource(
      {CounterSpec("iptables_rule_bytes_total", "Total bytes matching a rule",
                   {OneOf("table", kIptablesTables), UpTo("chain", kMaxRuleSeries),
                    UpTo("rule", kMaxRuleSeries)}),
       CounterSpec("iptables_rule_packets_total", "Total packets matching a rule",
                   {OneOf("table", kIptablesTables), UpTo("chain", kMaxRuleSeries),
                    UpTo("rule", kMaxRuleSeries)}),
       CounterSpec("iptables_default_bytes_total", "Total bytes matching a chain's default policy",
                   {OneOf("table", kIptablesTables), UpTo("chain", kMaxRuleSeries),
                    OneOf("policy", {"ACCEPT", "DROP"})}),
       CounterSpec("iptables_default_packets_total",
                   "Total packets matching a chain's default policy",
                   {OneOf("table", kIptablesTables), UpTo("chain", kMaxRuleSeries),
                    OneOf("policy", {"ACCEPT", "DROP"})}),
       GaugeSpec("iptables_scrape_duration_seconds", "Duration of scraping iptables"),
       GaugeSpec("iptables_scrape_success", "Whether scraping iptables succeeded")});
}

}  // namespace spoke::netagent
