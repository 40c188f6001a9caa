// Compares the store, the cloud and the agents: in the background, and when an operator asks. On a
// thread of its own; the loop is only asked short questions.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "ipam-server/audit/audit.h"
#include "ipam-server/audit/audit_snapshot.h"
#include "ipam-server/cloud/cloud.h"
#include "ipam-server/loop/fleet_loop.h"
#include "ipam-server/loop/loop_call.h"
#include "lib/os/clock.h"
#include "lib/telemetry/log.h"

namespace spoke::ipam {

struct AuditReport {
  absl::Time at;
  std::vector<AuditDifference> differences;
  std::vector<bool> repaired;  // In the order of `differences`.
  uint64_t agents_asked = 0;
  uint64_t agents_silent = 0;  // Agents that did not answer in time, left out of the comparison.
  absl::Status cloud;          // Why the cloud was left out of the comparison; OK: it was not.
};

// Thread-safe. One audit at a time: who comes second waits.
class AuditJob {
 public:
  struct Settings {
    absl::Duration period = absl::Minutes(10);    // The background audits' period; 0: none.
    absl::Duration patience = absl::Seconds(10);  // The time agents have to answer.
    AuditPolicy policy;
  };
  using Progress = ipam::Progress;  // Nodes compared, of all.

  struct Edges {
    FleetLoop& loop;
    Cloud& cloud;
    const os::Clock& clock;
    telemetry::Log& log;
    ServerMetrics* metrics = nullptr;  // nullptr: nobody counts.
  };

  // Borrows the edges; the loop must not run yet, since this becomes its inventory sink.
  AuditJob(const Settings& settings, const Edges& edges);
  AuditJob(const AuditJob&) = delete;
  AuditJob& operator=(const AuditJob&) = delete;
  // Finishes what is under way. The loop must still run, or have been stopped.
  ~AuditJob();

  // Begins the work in the background.
  void Start();

  // Errors: kUnavailable (the loop does not answer, or it is stopping). A cloud that cannot be
  // listed is no error: the report says so, and the other two are compared.
  absl::StatusOr<AuditReport> Run(bool repair, const Progress& progress);

  // Returns the report of the last audit that was completed; nullopt: none was yet.
  std::optional<AuditReport> Last() const;

 private:
  void Work();
  absl::StatusOr<AuditReport> RunOne(bool repair, const Progress& progress)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(one_at_a_time_);
  void Count(const AuditReport& report) const;
  CloudListing AwaitListing() const;
  void ListCloud();
  absl::Status TakeSnapshot(const Progress& progress, AuditSnapshot& snapshot);
  void CollectInventories(AuditSnapshot& snapshot);
  absl::StatusOr<bool> Repair(const AuditDifference& difference, const AuditSnapshot& snapshot);

  const Settings settings_;
  const Edges edges_;

  absl::Mutex one_at_a_time_;
  AuditMemory memory_ ABSL_GUARDED_BY(one_at_a_time_);

  mutable absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<NodeKey, node_api::Inventory> inventories_ ABSL_GUARDED_BY(mutex_);
  std::optional<AuditReport> last_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace spoke::ipam
