// Every metric of the server, and the calls that set them. docs/METRICS.md says what each is for.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "lib/node_api/maintenance.h"
#include "lib/node_checks/check_ids.h"
#include "lib/telemetry/metrics.h"

namespace spoke::ipam {

// The label of the checks that this server does not know, and newer agents make.
inline constexpr std::string_view kUnknownCheck = "unknown";

// The table, process_* and spoke_build_info included.
std::vector<telemetry::MetricSpec> ServerMetricSpecs();

// Counts are addresses.
struct PoolMetrics {
  uint64_t usable = 0;
  uint64_t free = 0;
  uint64_t attaching = 0;
  uint64_t available = 0;
  uint64_t in_use = 0;
  uint64_t cooldown = 0;
  uint64_t detaching = 0;
  uint64_t released = 0;
  uint64_t quarantined = 0;
  uint64_t reserved = 0;  // The part of the free ones.
};

// The nodes that one check warns on.
struct WarnedNodes {
  uint64_t nodes = 0;
  absl::Duration longest;  // For how long the one that has been warned on longest has been.
};

struct NodeMetrics {
  uint64_t active = 0;
  uint64_t draining = 0;
  uint64_t frozen = 0;
  uint64_t retired = 0;
  uint64_t connected = 0;
  uint64_t in_shortage = 0;   // Nodes that hold fewer addresses than their target.
  uint64_t pods_waiting = 0;  // Pods that wait for addresses on all nodes.
  // Nodes for whose machine the cloud has announced something, by the worst MaintenanceKind of it.
  std::array<uint64_t, node_api::kMaintenanceKinds> maintenance{};
  // By the place of the check in kCheckIds; the last one: checks that this server does not know.
  std::array<WarnedNodes, node_checks::kCheckIds.size() + 1> warned{};
};

struct PolicyMetrics {
  uint64_t version = 0;
  uint64_t nodes_behind = 0;   // Nodes connected, and not on `version`.
  uint64_t nodes_refused = 0;  // The ones whose agents refused it.
};

struct ReservationMetrics {
  uint64_t reservations = 0;
  uint64_t promised = 0;  // Addresses promised and not yet held.
  uint64_t short_by = 0;  // The ones that are not there.
};

struct BreakerMetrics {
  bool frozen = false;
  uint64_t trips = 0;     // All trips ever.
  uint64_t headroom = 0;  // Addresses that may be freed now.
};

enum class HelloOutcome { kAdmitted, kDelayed, kRefused };
enum class ReclaimOutcome { kAsked, kAgreed, kDenied, kNodeGone };
enum class TrafficOf { kNamespace, kTeam };
enum class CloudCall { kApply, kList, kHttp };

// Metrics must outlive it. The calls that begin with Set replace what was said before and belong to
// one thread, the loop's; those that begin with Count are thread-safe.
class ServerMetrics {
 public:
  // Registers the process metrics as well.
  ServerMetrics(telemetry::Metrics& metrics, std::string_view version);

  void SetPool(const std::string& pool, const PoolMetrics& counts);
  void SetNodes(const NodeMetrics& counts);
  void SetPolicy(const PolicyMetrics& policy);
  void SetReservations(const ReservationMetrics& reservations);
  void SetBreaker(const BreakerMetrics& breaker);
  void SetDoubled(uint64_t addresses);
  void SetSessions(uint64_t open);
  void SetHellosWaiting(uint64_t waiting);
  void SetMailbox(uint64_t messages);
  void SetStore(uint64_t bytes, bool writable);

  void CountHello(HelloOutcome outcome);
  void CountSessionReplaced();
  void SetRecovery(bool under_way);
  void CountReport(uint64_t in_use, uint64_t released);
  // Messages that changed nothing: out of date, repeated, or of a session that was replaced.
  void CountStale();
  void CountReclaim(ReclaimOutcome outcome, uint64_t addresses);
  // Counts the time from an address's allocation to its node until it was attached.
  void CountAttached(absl::Duration took);

  // Counts one batch, whatever became of it.
  void CountCommit(const absl::Status& result, uint64_t records, absl::Duration took);
  // Counts one turn of the loop.
  void CountTurn(absl::Duration took);
  void CountCloudCall(CloudCall call, const absl::Status& result, absl::Duration took);

  // An audit that ran: how many differences of each kind (AuditKind's words) it left. Kinds that
  // are not named have none.
  void CountAudit(const std::map<std::string, uint64_t>& by_kind, absl::Time now);
  void CountAuditFailed();
  void CountAuditRepairs(uint64_t repairs);

  // What pods of the namespace or team called `name` have sent and received. Costs a lookup.
  std::pair<telemetry::Counter, telemetry::Counter> TrafficBytes(TrafficOf of,
                                                                 const std::string& name,
                                                                 const std::string& traffic_class);

 private:
  telemetry::Metrics& metrics_;
  // What is counted for each message, looked up once.
  telemetry::Counter reports_;
  telemetry::Counter assignments_;
  telemetry::Counter releases_;
  telemetry::Counter stale_;
  telemetry::Gauge mailbox_;
  telemetry::Histogram attach_duration_;
  telemetry::Histogram commit_duration_;
  telemetry::Histogram commit_records_;
  telemetry::Histogram turn_duration_;
};

}  // namespace spoke::ipam
