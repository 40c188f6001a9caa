// The table of the server's metrics.
#include <utility>

#include "ipam-server/audit/audit.h"
#include "ipam-server/telemetry/budget_samples.h"
#include "ipam-server/telemetry/cloud_samples.h"
#include "ipam-server/telemetry/node_samples.h"
#include "ipam-server/telemetry/reachability_samples.h"
#include "ipam-server/telemetry/server_metrics.h"
#include "lib/rpc/certificate_metrics.h"
#include "lib/telemetry/process_metrics.h"

namespace spoke::ipam {
namespace {

using telemetry::CounterSpec;
using telemetry::FromSource;
using telemetry::GaugeSpec;
using telemetry::HistogramSpec;
using telemetry::MetricSpec;
using telemetry::OneOf;
using telemetry::UpTo;

// Pools beyond this share the label "other".
constexpr size_t kMaxPools = 256;
// Namespaces and teams beyond this share the label "other", as do classes.
constexpr size_t kMaxTrafficNames = 500;
constexpr size_t kMaxTrafficClasses = 24;

std::vector<std::string> AuditKinds() {
  std::vector<std::string> kinds;
  for (int i = 0; i <= static_cast<int>(kLastAuditKind); ++i) {
    kinds.emplace_back(NameOf(static_cast<AuditKind>(i)));
  }
  return kinds;
}

std::vector<MetricSpec> AddressMetrics() {
  return {
      GaugeSpec("spoke_ipam_pool_addresses", "Addresses of each pool by state",
                {UpTo("pool", kMaxPools),
                 OneOf("state", {"free", "attaching", "available", "in_use", "cooldown",
                                 "detaching", "released", "quarantined"})}),
      GaugeSpec("spoke_ipam_pool_usable_addresses",
                "Addresses of each pool that can be handed out at all", {UpTo("pool", kMaxPools)}),
      GaugeSpec("spoke_ipam_pool_reserved_addresses",
                "Free addresses of each pool that are kept for reservations",
                {UpTo("pool", kMaxPools)}),
      CounterSpec("spoke_ipam_assignments_total", "Assignments that agents reported"),
      CounterSpec("spoke_ipam_releases_total", "Ends of assignments that agents reported"),
      CounterSpec("spoke_ipam_reclaims_total",
                  "Addresses that nodes were asked to give back, and what came of it",
                  {OneOf("outcome", {"asked", "agreed", "denied", "node_gone"})}),
      HistogramSpec("spoke_ipam_attach_duration_seconds",
                    "From the assignment of an address to a node until it was on the NIC",
                    {0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}),
      GaugeSpec("spoke_ipam_reservations", "Reservations in force"),
      GaugeSpec("spoke_ipam_promised_addresses",
                "Addresses promised by reservations and not yet held"),
      GaugeSpec("spoke_ipam_broken_promise_addresses",
                "Promised addresses that no pool has free any more"),
      GaugeSpec("spoke_ipam_releases_frozen",
                "1 while the mass-release breaker has frozen releases, else 0"),
      CounterSpec("spoke_ipam_breaker_trips_total",
                  "How often the mass-release breaker has frozen releases"),
      GaugeSpec("spoke_ipam_breaker_headroom_addresses",
                "Addresses that may be freed now before releases freeze"),
  };
}

std::vector<std::string> CheckNames() {
  std::vector<std::string> names(node_checks::kCheckIds.begin(), node_checks::kCheckIds.end());
  names.emplace_back(kUnknownCheck);
  return names;
}

std::vector<MetricSpec> NodeMetricSpecs() {
  return {
      GaugeSpec("spoke_ipam_nodes", "Nodes by mode",
                {OneOf("mode", {"active", "draining", "frozen", "retired"})}),
      GaugeSpec("spoke_ipam_connected_nodes", "Nodes whose agent has a session"),
      GaugeSpec("spoke_ipam_shortage_nodes", "Nodes that hold fewer addresses than their target"),
      GaugeSpec("spoke_ipam_maintenance_nodes",
                "Nodes for whose machine the cloud has announced maintenance, by the worst of it",
                {OneOf("kind", {"Freeze", "Reboot", "Redeploy", "Preempt", "Terminate"})}),
      GaugeSpec("spoke_ipam_warned_nodes", "Connected nodes on which a check warns, by check",
                {OneOf("check", CheckNames())}),
      GaugeSpec("spoke_ipam_longest_warning_seconds",
                "For how long a check has warned on the node where it has done so longest; 0: on "
                "none",
                {OneOf("check", CheckNames())}),
      GaugeSpec("spoke_ipam_pods_waiting",
                "Pods that wait on connected nodes for addresses which these do not have"),
      GaugeSpec("spoke_ipam_sessions", "Open streams of agents"),
      CounterSpec("spoke_ipam_hellos_total", "Agents that opened a session, and whether at once",
                  {OneOf("outcome", {"admitted", "delayed", "refused"})}),
      GaugeSpec("spoke_ipam_recovery",
                "1 while nothing is decided since nodes were told more than the store knows"),
      GaugeSpec("spoke_ipam_doubled_addresses",
                "Addresses that two machines have, as agents report"),
      CounterSpec("spoke_ipam_sessions_replaced_total",
                  "Sessions that a newer one of the same node has ended"),
      GaugeSpec("spoke_ipam_waiting_hellos", "Agents that wait to be admitted"),
      CounterSpec("spoke_ipam_reports_total", "Reports of agents about assignments"),
      CounterSpec("spoke_ipam_stale_messages_total",
                  "Messages of agents that were out of date or repeated, and changed nothing"),
      GaugeSpec("spoke_ipam_policy_version", "Version of the policy objects in force"),
      GaugeSpec("spoke_ipam_policy_behind_nodes",
                "Connected nodes that do not run the policy version in force"),
      GaugeSpec("spoke_ipam_policy_refused_nodes",
                "Connected nodes whose agent refused the policy version in force"),
  };
}

std::vector<MetricSpec> StoreMetricSpecs() {
  return {
      CounterSpec("spoke_ipam_commits_total", "Batches given to the store, by result",
                  {OneOf("result", {"ok", "conflict", "full", "denied", "unavailable"})}),
      HistogramSpec("spoke_ipam_commit_duration_seconds", "Time of one commit, until it is durable",
                    {0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 5}),
      HistogramSpec("spoke_ipam_commit_batch_records", "Records in one commit",
                    {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}),
      HistogramSpec("spoke_ipam_loop_turn_duration_seconds",
                    "Time of one turn of the loop, which agents and operators wait for",
                    {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 5}),
      GaugeSpec("spoke_ipam_mailbox_messages", "Messages that wait for the loop"),
      GaugeSpec("spoke_ipam_store_bytes", "Size of the store on disk"),
      GaugeSpec("spoke_ipam_store_writable", "1 while the store takes writes, else 0"),
  };
}

std::vector<MetricSpec> CheckMetricSpecs() {
  return {
      CounterSpec("spoke_ipam_cloud_calls_total", "Calls to the cloud, by result",
                  {OneOf("call", {"apply", "list", "http"}),
                   OneOf("result", {"ok", "throttled", "denied", "unavailable", "failed"})}),
      HistogramSpec("spoke_ipam_cloud_call_duration_seconds", "Time of one call to the cloud",
                    {0.001, 0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 120},
                    {OneOf("call", {"apply", "list", "http"})}),
      CounterSpec("spoke_ipam_audits_total", "Audits, by whether they could run and ask the cloud",
                  {OneOf("result", {"ok", "failed"})}),
      GaugeSpec("spoke_ipam_audit_differences",
                "Differences between store, cloud and agents that the last whole audit left",
                {OneOf("kind", AuditKinds())}),
      GaugeSpec("spoke_ipam_last_audit_timestamp_seconds",
                "When the last whole audit ended, in seconds since 1970; 0: none yet"),
      CounterSpec("spoke_ipam_audit_repairs_total", "Differences that an audit repaired"),
      GaugeSpec("spoke_build_info", "Always 1; the label tells the version of the program",
                {UpTo("version", 1)}),
  };
}

std::vector<MetricSpec> TrafficMetricSpecs() {
  return {CounterSpec("spoke_namespace_bytes_total",
                      "Bytes that pods of each namespace have sent and received, by class",
                      {UpTo("namespace", kMaxTrafficNames), UpTo("class", kMaxTrafficClasses),
                       OneOf("direction", {"sent", "received"})}),
          CounterSpec("spoke_team_bytes_total",
                      "Bytes that pods of each team have sent and received, by class",
                      {UpTo("team", kMaxTrafficNames), UpTo("class", kMaxTrafficClasses),
                       OneOf("direction", {"sent", "received"})})};
}

// Clusters have two or three servers.
constexpr size_t kMaxServers = 16;

std::vector<MetricSpec> ServingMetricSpecs() {
  return FromSource(
      {CounterSpec(
           "spoke_ipam_connections_refused_total",
           "Connections and requests that were refused or cut, by port and reason",
           {OneOf("listener", {"agents", "admin", "enroll", "metrics"}),
            OneOf("reason", {"peer_connections", "peer_rate", "full", "bytes", "unauthorized"})}),
       GaugeSpec("spoke_ipam_leading", "1 while this server leads, 0 while it stands by"),
       GaugeSpec("spoke_ipam_leader_info",
                 "Always 1; the label tells who leads, as this server knows it",
                 {UpTo("leader", kMaxServers)}),
       GaugeSpec("spoke_ipam_leadership_margin_seconds",
                 "Time for which no other server can lead, without another renewal of the lease"),
       GaugeSpec("spoke_ipam_mirror_records", "Records that this server has while it stands by"),
       GaugeSpec("spoke_ipam_mirror_revision",
                 "The last change of a record that this server has followed"),
       GaugeSpec("spoke_ipam_mirror_age_seconds",
                 "Time since this server was last known to have all records while it stands by"),
       CounterSpec("spoke_ipam_mirror_reads_total",
                   "How often all records were read, the first time among them"),
       CounterSpec("spoke_ipam_mirror_breaks_total",
                   "How often the watch of the records has ended and was begun anew")});
}

}  // namespace

std::vector<MetricSpec> ServerMetricSpecs() {
  std::vector<MetricSpec> all = AddressMetrics();
  for (auto part : {NodeMetricSpecs(), StoreMetricSpecs(), CheckMetricSpecs(), TrafficMetricSpecs(),
                    BudgetMetricSpecs(), CloudLoadMetricSpecs(), ServingMetricSpecs(),
                    KubernetesMetricSpecs(), ReachabilityMetricSpecs(),
                    rpc::CertificateMetricSpecs(), telemetry::ProcessMetricSpecs()}) {
    for (MetricSpec& spec : part) all.push_back(std::move(spec));
  }
  return all;
}

}  // namespace spoke::ipam
