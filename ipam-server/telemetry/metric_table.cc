// The table of the server's metrics.
#include <utility>

#include "ipam-server/audit/audit.h"
#include "ipam-server/telemetry/budget_samples.h"
#include "ipam-server/telemetry/server_metrics.h"
#include "lib/telemetry/process_metrics.h"

namespace spoke::ipam {
namespace {

using telemetry::MetricSpec;
using telemetry::MetricType;
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
      {.name = "spoke_ipam_pool_addresses",
       .type = MetricType::kGauge,
       .help = "Addresses of each pool by state",
       .labels = {UpTo("pool", kMaxPools),
                  OneOf("state", {"free", "attaching", "available", "in_use", "cooldown",
                                  "detaching", "released", "quarantined"})}},
      {.name = "spoke_ipam_pool_usable_addresses",
       .type = MetricType::kGauge,
       .help = "Addresses of each pool that can be handed out at all",
       .labels = {UpTo("pool", kMaxPools)}},
      {.name = "spoke_ipam_pool_reserved_addresses",
       .type = MetricType::kGauge,
       .help = "Free addresses of each pool that are kept for reservations",
       .labels = {UpTo("pool", kMaxPools)}},
      {.name = "spoke_ipam_assignments_total",
       .type = MetricType::kCounter,
       .help = "Assignments that agents reported"},
      {.name = "spoke_ipam_releases_total",
       .type = MetricType::kCounter,
       .help = "Ends of assignments that agents reported"},
      {.name = "spoke_ipam_reclaims_total",
       .type = MetricType::kCounter,
       .help = "Addresses that nodes were asked to give back, and what came of it",
       .labels = {OneOf("outcome", {"asked", "agreed", "denied", "node_gone"})}},
      {.name = "spoke_ipam_attach_duration_seconds",
       .type = MetricType::kHistogram,
       .help = "From the assignment of an address to a node until it was on the NIC",
       .buckets = {0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}},
      {.name = "spoke_ipam_reservations",
       .type = MetricType::kGauge,
       .help = "Reservations in force"},
      {.name = "spoke_ipam_promised_addresses",
       .type = MetricType::kGauge,
       .help = "Addresses promised by reservations and not yet held"},
      {.name = "spoke_ipam_broken_promise_addresses",
       .type = MetricType::kGauge,
       .help = "Promised addresses that no pool has free any more"},
      {.name = "spoke_ipam_releases_frozen",
       .type = MetricType::kGauge,
       .help = "1 while the mass-release breaker has frozen releases, else 0"},
      {.name = "spoke_ipam_breaker_trips_total",
       .type = MetricType::kCounter,
       .help = "How often the mass-release breaker has frozen releases"},
      {.name = "spoke_ipam_breaker_headroom_addresses",
       .type = MetricType::kGauge,
       .help = "Addresses that may be freed now before releases freeze"},
  };
}

std::vector<MetricSpec> NodeMetricSpecs() {
  return {
      {.name = "spoke_ipam_nodes",
       .type = MetricType::kGauge,
       .help = "Nodes by mode",
       .labels = {OneOf("mode", {"active", "draining", "frozen", "retired"})}},
      {.name = "spoke_ipam_connected_nodes",
       .type = MetricType::kGauge,
       .help = "Nodes whose agent has a session"},
      {.name = "spoke_ipam_shortage_nodes",
       .type = MetricType::kGauge,
       .help = "Nodes that hold fewer addresses than their target"},
      {.name = "spoke_ipam_pods_waiting",
       .type = MetricType::kGauge,
       .help = "Pods that wait on connected nodes for addresses which these do not have"},
      {.name = "spoke_ipam_sessions", .type = MetricType::kGauge, .help = "Open streams of agents"},
      {.name = "spoke_ipam_hellos_total",
       .type = MetricType::kCounter,
       .help = "Agents that opened a session, and whether at once",
       .labels = {OneOf("outcome", {"admitted", "delayed", "refused"})}},
      {.name = "spoke_ipam_recovery",
       .type = MetricType::kGauge,
       .help = "1 while nothing is decided since nodes were told more than the store knows"},
      {.name = "spoke_ipam_doubled_addresses",
       .type = MetricType::kGauge,
       .help = "Addresses that two machines have, as agents report"},
      {.name = "spoke_ipam_sessions_replaced_total",
       .type = MetricType::kCounter,
       .help = "Sessions that a newer one of the same node has ended"},
      {.name = "spoke_ipam_waiting_hellos",
       .type = MetricType::kGauge,
       .help = "Agents that wait to be admitted"},
      {.name = "spoke_ipam_reports_total",
       .type = MetricType::kCounter,
       .help = "Reports of agents about assignments"},
      {.name = "spoke_ipam_stale_messages_total",
       .type = MetricType::kCounter,
       .help = "Messages of agents that were out of date or repeated, and changed nothing"},
      {.name = "spoke_ipam_policy_version",
       .type = MetricType::kGauge,
       .help = "Version of the policy objects in force"},
      {.name = "spoke_ipam_policy_behind_nodes",
       .type = MetricType::kGauge,
       .help = "Connected nodes that do not run the policy version in force"},
      {.name = "spoke_ipam_policy_refused_nodes",
       .type = MetricType::kGauge,
       .help = "Connected nodes whose agent refused the policy version in force"},
  };
}

std::vector<MetricSpec> StoreMetricSpecs() {
  return {
      {.name = "spoke_ipam_commits_total",
       .type = MetricType::kCounter,
       .help = "Batches given to the store, by result",
       .labels = {OneOf("result", {"ok", "conflict", "full", "denied", "unavailable"})}},
      {.name = "spoke_ipam_commit_duration_seconds",
       .type = MetricType::kHistogram,
       .help = "Time of one commit, until it is durable",
       .buckets = {0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 5}},
      {.name = "spoke_ipam_commit_batch_records",
       .type = MetricType::kHistogram,
       .help = "Records in one commit",
       .buckets = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}},
      {.name = "spoke_ipam_loop_turn_duration_seconds",
       .type = MetricType::kHistogram,
       .help = "Time of one turn of the loop, which agents and operators wait for",
       .buckets = {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 5}},
      {.name = "spoke_ipam_mailbox_messages",
       .type = MetricType::kGauge,
       .help = "Messages that wait for the loop"},
      {.name = "spoke_ipam_store_bytes",
       .type = MetricType::kGauge,
       .help = "Size of the store on disk"},
      {.name = "spoke_ipam_store_writable",
       .type = MetricType::kGauge,
       .help = "1 while the store takes writes, else 0"},
  };
}

std::vector<MetricSpec> CheckMetricSpecs() {
  return {
      {.name = "spoke_ipam_cloud_calls_total",
       .type = MetricType::kCounter,
       .help = "Calls to the cloud, by result",
       .labels = {OneOf("call", {"apply", "list", "http"}),
                  OneOf("result", {"ok", "throttled", "denied", "unavailable", "failed"})}},
      {.name = "spoke_ipam_cloud_call_duration_seconds",
       .type = MetricType::kHistogram,
       .help = "Time of one call to the cloud",
       .labels = {OneOf("call", {"apply", "list", "http"})},
       .buckets = {0.001, 0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 120}},
      {.name = "spoke_ipam_audits_total",
       .type = MetricType::kCounter,
       .help = "Audits, by whether they could run",
       .labels = {OneOf("result", {"ok", "failed"})}},
      {.name = "spoke_ipam_audit_differences",
       .type = MetricType::kGauge,
       .help = "Differences between store, cloud and agents that the last audit left",
       .labels = {OneOf("kind", AuditKinds())}},
      {.name = "spoke_ipam_last_audit_timestamp_seconds",
       .type = MetricType::kGauge,
       .help = "When the last audit that could run ended, in seconds since 1970; 0: none yet"},
      {.name = "spoke_ipam_audit_repairs_total",
       .type = MetricType::kCounter,
       .help = "Differences that an audit repaired"},
      {.name = "spoke_ipam_connections_refused_total",
       .type = MetricType::kCounter,
       .help = "Connections and requests that were refused or cut, by port and reason",
       .labels = {OneOf("listener", {"agents", "admin", "enroll", "metrics"}),
                  OneOf("reason",
                        {"peer_connections", "peer_rate", "full", "bytes", "unauthorized"})},
       .from_source = true},
      {.name = "spoke_build_info",
       .type = MetricType::kGauge,
       .help = "Always 1; the label tells the version of the program",
       .labels = {UpTo("version", 1)}},
  };
}

}  // namespace

namespace {

std::vector<MetricSpec> TrafficMetricSpecs() {
  return {{.name = "spoke_namespace_bytes_total",
           .type = MetricType::kCounter,
           .help = "Bytes that pods of each namespace have sent and received, by class",
           .labels = {UpTo("namespace", kMaxTrafficNames), UpTo("class", kMaxTrafficClasses),
                      OneOf("direction", {"sent", "received"})}},
          {.name = "spoke_team_bytes_total",
           .type = MetricType::kCounter,
           .help = "Bytes that pods of each team have sent and received, by class",
           .labels = {UpTo("team", kMaxTrafficNames), UpTo("class", kMaxTrafficClasses),
                      OneOf("direction", {"sent", "received"})}}};
}

// Clusters have two or three servers.
constexpr size_t kMaxServers = 16;

std::vector<MetricSpec> LeadershipMetricSpecs() {
  return {{.name = "spoke_ipam_leading",
           .type = MetricType::kGauge,
           .help = "1 while this server leads, 0 while it stands by",
           .from_source = true},
          {.name = "spoke_ipam_leader_info",
           .type = MetricType::kGauge,
           .help = "Always 1; the label tells who leads, as this server knows it",
           .labels = {UpTo("leader", kMaxServers)},
           .from_source = true},
          {.name = "spoke_ipam_leadership_margin_seconds",
           .type = MetricType::kGauge,
           .help = "Time for which no other server can lead, without another renewal of the lease",
           .from_source = true},
          {.name = "spoke_ipam_mirror_records",
           .type = MetricType::kGauge,
           .help = "Records that this server has while it stands by",
           .from_source = true},
          {.name = "spoke_ipam_mirror_revision",
           .type = MetricType::kGauge,
           .help = "The last change of a record that this server has followed",
           .from_source = true},
          {.name = "spoke_ipam_mirror_age_seconds",
           .type = MetricType::kGauge,
           .help = "Time since this server was last known to have all records while it stands by",
           .from_source = true},
          {.name = "spoke_ipam_mirror_reads_total",
           .type = MetricType::kCounter,
           .help = "How often all records were read, the first time among them",
           .from_source = true},
          {.name = "spoke_ipam_mirror_breaks_total",
           .type = MetricType::kCounter,
           .help = "How often the watch of the records has ended and was begun anew",
           .from_source = true}};
}

}  // namespace

std::vector<MetricSpec> ServerMetricSpecs() {
  std::vector<MetricSpec> all = AddressMetrics();
  for (auto part :
       {NodeMetricSpecs(), StoreMetricSpecs(), CheckMetricSpecs(), TrafficMetricSpecs(),
        BudgetMetricSpecs(), LeadershipMetricSpecs(), telemetry::ProcessMetricSpecs()}) {
    for (MetricSpec& spec : part) all.push_back(std::move(spec));
  }
  return all;
}

}  // namespace spoke::ipam
