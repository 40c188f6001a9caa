#include "ipam-server/telemetry/server_metrics.h"

#include "ipam-server/audit/audit.h"
#include "lib/telemetry/process_metrics.h"

namespace spoke::ipam {
namespace {

constexpr const char* kPoolAddresses = "spoke_ipam_pool_addresses";
constexpr const char* kPoolUsable = "spoke_ipam_pool_usable_addresses";
constexpr const char* kPoolReserved = "spoke_ipam_pool_reserved_addresses";

std::vector<std::pair<const char*, uint64_t>> StatesOf(const PoolMetrics& counts) {
  return {{"free", counts.free},           {"attaching", counts.attaching},
          {"available", counts.available}, {"in_use", counts.in_use},
          {"cooldown", counts.cooldown},   {"detaching", counts.detaching},
          {"released", counts.released},   {"quarantined", counts.quarantined}};
}

std::string OutcomeOf(HelloOutcome outcome) {
  switch (outcome) {
    case HelloOutcome::kAdmitted:
      return "admitted";
    case HelloOutcome::kDelayed:
      return "delayed";
    case HelloOutcome::kRefused:
      return "refused";
  }
  return "refused";
}

std::string OutcomeOf(ReclaimOutcome outcome) {
  switch (outcome) {
    case ReclaimOutcome::kAsked:
      return "asked";
    case ReclaimOutcome::kAgreed:
      return "agreed";
    case ReclaimOutcome::kDenied:
      return "denied";
    case ReclaimOutcome::kNodeGone:
      return "node_gone";
  }
  return "asked";
}

std::string NameOf(CloudCall call) {
  switch (call) {
    case CloudCall::kApply:
      return "apply";
    case CloudCall::kList:
      return "list";
    case CloudCall::kHttp:
      return "http";
  }
  return "apply";
}

std::string CommitResult(const absl::Status& status) {
  if (status.ok()) return "ok";
  if (absl::IsAborted(status)) return "conflict";
  if (absl::IsResourceExhausted(status)) return "full";
  if (absl::IsPermissionDenied(status)) return "denied";
  return "unavailable";
}

std::string CloudResult(const absl::Status& status) {
  if (status.ok()) return "ok";
  if (absl::IsResourceExhausted(status)) return "throttled";
  if (absl::IsPermissionDenied(status)) return "denied";
  if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) return "unavailable";
  return "failed";
}

double Number(uint64_t count) { return static_cast<double>(count); }

}  // namespace

// Makes every series here, with 0: a counter that appears with its first event hides that event
// from rate().
ServerMetrics::ServerMetrics(telemetry::Metrics& metrics, std::string_view version)
    : metrics_(metrics),
      reports_(metrics.GetCounter("spoke_ipam_reports_total")),
      assignments_(metrics.GetCounter("spoke_ipam_assignments_total")),
      releases_(metrics.GetCounter("spoke_ipam_releases_total")),
      stale_(metrics.GetCounter("spoke_ipam_stale_messages_total")),
      mailbox_(metrics.GetGauge("spoke_ipam_mailbox_messages")),
      attach_duration_(metrics.GetHistogram("spoke_ipam_attach_duration_seconds")),
      commit_duration_(metrics.GetHistogram("spoke_ipam_commit_duration_seconds")),
      commit_records_(metrics.GetHistogram("spoke_ipam_commit_batch_records")),
      turn_duration_(metrics.GetHistogram("spoke_ipam_loop_turn_duration_seconds")) {
  telemetry::AddProcessMetrics(metrics);
  metrics.GetGauge("spoke_build_info", {std::string(version)}).Set(1);
  for (const telemetry::MetricSpec& spec : ServerMetricSpecs()) {
    if (spec.from_source) continue;  // Its source says which there are.
    std::vector<std::vector<std::string>> series{{}};
    for (const telemetry::LabelSpec& label : spec.labels) {
      std::vector<std::vector<std::string>> longer;
      for (const auto& prefix : series) {
        for (const std::string& value : label.values) {
          longer.push_back(prefix);
          longer.back().push_back(value);
        }
      }
      series = std::move(longer);  // Empty when an operator names the values.
    }
    for (const auto& labels : series) {
      switch (spec.type) {
        case telemetry::MetricType::kCounter:
          metrics.GetCounter(spec.name, labels);
          break;
        case telemetry::MetricType::kGauge:
          metrics.GetGauge(spec.name, labels);
          break;
        case telemetry::MetricType::kHistogram:
          metrics.GetHistogram(spec.name, labels);
          break;
      }
    }
  }
  metrics.GetGauge("spoke_ipam_store_writable").Set(1);
}

void ServerMetrics::SetPool(const std::string& pool, const PoolMetrics& counts) {
  for (const auto& [state, count] : StatesOf(counts)) {
    metrics_.GetGauge(kPoolAddresses, {pool, state}).Set(Number(count));
  }
  metrics_.GetGauge(kPoolUsable, {pool}).Set(Number(counts.usable));
  metrics_.GetGauge(kPoolReserved, {pool}).Set(Number(counts.reserved));
}

void ServerMetrics::SetNodes(const NodeMetrics& counts) {
  metrics_.GetGauge("spoke_ipam_nodes", {"active"}).Set(Number(counts.active));
  metrics_.GetGauge("spoke_ipam_nodes", {"draining"}).Set(Number(counts.draining));
  metrics_.GetGauge("spoke_ipam_nodes", {"frozen"}).Set(Number(counts.frozen));
  metrics_.GetGauge("spoke_ipam_nodes", {"retired"}).Set(Number(counts.retired));
  metrics_.GetGauge("spoke_ipam_connected_nodes").Set(Number(counts.connected));
  metrics_.GetGauge("spoke_ipam_shortage_nodes").Set(Number(counts.in_shortage));
  metrics_.GetGauge("spoke_ipam_pods_waiting").Set(Number(counts.pods_waiting));
  for (size_t i = 0; i < counts.maintenance.size(); ++i) {
    const std::string kind(NameOf(static_cast<node_api::MaintenanceKind>(i)));
    metrics_.GetGauge("spoke_ipam_maintenance_nodes", {kind}).Set(Number(counts.maintenance[i]));
  }
  for (size_t i = 0; i < counts.warned.size(); ++i) {
    const std::string check(i < node_checks::kCheckIds.size() ? node_checks::kCheckIds[i]
                                                              : kUnknownCheck);
    metrics_.GetGauge("spoke_ipam_warned_nodes", {check}).Set(Number(counts.warned[i].nodes));
    metrics_.GetGauge("spoke_ipam_longest_warning_seconds", {check})
        .Set(absl::ToDoubleSeconds(counts.warned[i].longest));
  }
}

void ServerMetrics::SetPolicy(const PolicyMetrics& policy) {
  metrics_.GetGauge("spoke_ipam_policy_version").Set(Number(policy.version));
  metrics_.GetGauge("spoke_ipam_policy_behind_nodes").Set(Number(policy.nodes_behind));
  metrics_.GetGauge("spoke_ipam_policy_refused_nodes").Set(Number(policy.nodes_refused));
}

void ServerMetrics::SetReservations(const ReservationMetrics& reservations) {
  metrics_.GetGauge("spoke_ipam_reservations").Set(Number(reservations.reservations));
  metrics_.GetGauge("spoke_ipam_promised_addresses").Set(Number(reservations.promised));
  metrics_.GetGauge("spoke_ipam_broken_promise_addresses").Set(Number(reservations.short_by));
}

void ServerMetrics::SetBreaker(const BreakerMetrics& breaker) {
  metrics_.GetGauge("spoke_ipam_releases_frozen").Set(breaker.frozen ? 1 : 0);
  metrics_.GetGauge("spoke_ipam_breaker_headroom_addresses").Set(Number(breaker.headroom));
  const telemetry::Counter trips = metrics_.GetCounter("spoke_ipam_breaker_trips_total");
  if (Number(breaker.trips) > trips.value()) trips.Add(Number(breaker.trips) - trips.value());
}

void ServerMetrics::SetSessions(uint64_t open) {
  metrics_.GetGauge("spoke_ipam_sessions").Set(Number(open));
}

void ServerMetrics::SetHellosWaiting(uint64_t waiting) {
  metrics_.GetGauge("spoke_ipam_waiting_hellos").Set(Number(waiting));
}

void ServerMetrics::SetMailbox(uint64_t messages) { mailbox_.Set(Number(messages)); }

void ServerMetrics::SetStore(uint64_t bytes, bool writable) {
  metrics_.GetGauge("spoke_ipam_store_bytes").Set(Number(bytes));
  metrics_.GetGauge("spoke_ipam_store_writable").Set(writable ? 1 : 0);
}

void ServerMetrics::CountHello(HelloOutcome outcome) {
  metrics_.GetCounter("spoke_ipam_hellos_total", {OutcomeOf(outcome)}).Add();
}

void ServerMetrics::SetRecovery(bool under_way) {
  metrics_.GetGauge("spoke_ipam_recovery").Set(under_way ? 1 : 0);
}

void ServerMetrics::SetDoubled(uint64_t addresses) {
  metrics_.GetGauge("spoke_ipam_doubled_addresses").Set(Number(addresses));
}

void ServerMetrics::CountSessionReplaced() {
  metrics_.GetCounter("spoke_ipam_sessions_replaced_total").Add();
}

void ServerMetrics::CountReport(uint64_t in_use, uint64_t released) {
  reports_.Add();
  assignments_.Add(Number(in_use));
  releases_.Add(Number(released));
}

void ServerMetrics::CountStale() { stale_.Add(); }

void ServerMetrics::CountReclaim(ReclaimOutcome outcome, uint64_t addresses) {
  metrics_.GetCounter("spoke_ipam_reclaims_total", {OutcomeOf(outcome)}).Add(Number(addresses));
}

void ServerMetrics::CountAttached(absl::Duration took) {
  attach_duration_.Observe(absl::ToDoubleSeconds(took));
}

void ServerMetrics::CountTurn(absl::Duration took) {
  turn_duration_.Observe(absl::ToDoubleSeconds(took));
}

void ServerMetrics::CountCommit(const absl::Status& result, uint64_t records, absl::Duration took) {
  metrics_.GetCounter("spoke_ipam_commits_total", {CommitResult(result)}).Add();
  commit_duration_.Observe(absl::ToDoubleSeconds(took));
  commit_records_.Observe(Number(records));
}

void ServerMetrics::CountCloudCall(CloudCall call, const absl::Status& result,
                                   absl::Duration took) {
  const std::string name = NameOf(call);
  metrics_.GetCounter("spoke_ipam_cloud_calls_total", {name, CloudResult(result)}).Add();
  metrics_.GetHistogram("spoke_ipam_cloud_call_duration_seconds", {name})
      .Observe(absl::ToDoubleSeconds(took));
}

void ServerMetrics::CountAudit(const std::map<std::string, uint64_t>& by_kind, absl::Time now) {
  for (int i = 0; i <= static_cast<int>(kLastAuditKind); ++i) {
    const std::string kind(NameOf(static_cast<AuditKind>(i)));
    const auto found = by_kind.find(kind);
    metrics_.GetGauge("spoke_ipam_audit_differences", {kind})
        .Set(found == by_kind.end() ? 0 : Number(found->second));
  }
  metrics_.GetCounter("spoke_ipam_audits_total", {"ok"}).Add();
  metrics_.GetGauge("spoke_ipam_last_audit_timestamp_seconds")
      .Set(Number(static_cast<uint64_t>(absl::ToUnixSeconds(now))));
}

void ServerMetrics::CountAuditFailed() {
  metrics_.GetCounter("spoke_ipam_audits_total", {"failed"}).Add();
}

void ServerMetrics::CountAuditRepairs(uint64_t repairs) {
  metrics_.GetCounter("spoke_ipam_audit_repairs_total").Add(Number(repairs));
}

std::pair<telemetry::Counter, telemetry::Counter> ServerMetrics::TrafficBytes(
    TrafficOf of, const std::string& name, const std::string& traffic_class) {
  const std::string_view metric =
      of == TrafficOf::kNamespace ? "spoke_namespace_bytes_total" : "spoke_team_bytes_total";
  return {metrics_.GetCounter(metric, {name, traffic_class, "sent"}),
          metrics_.GetCounter(metric, {name, traffic_class, "received"})};
}

}  // namespace spoke::ipam
