#include "ipam-server/audit/audit_job.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/synchronization/notification.h"
#include "ipam-server/audit/audit_repair.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

constexpr absl::Duration kLoopPatience = absl::Seconds(30);
// Many scale sets, and limits that are used up, may take a while.
constexpr absl::Duration kMostListing = absl::Minutes(10);

}  // namespace

AuditJob::AuditJob(const Settings& settings, const Edges& edges)
    : settings_(settings), edges_(edges) {}

AuditJob::~AuditJob() {
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void AuditJob::Start() {
  thread_ = std::thread([this] { Work(); });
}

void AuditJob::Work() {
  absl::Time next_audit = edges_.clock.Now() + settings_.period;
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopped_), edges_.cloud.listing_period()))
        return;
    }
    ListCloud();
    if (settings_.period == absl::ZeroDuration() || edges_.clock.Now() < next_audit) continue;
    next_audit = edges_.clock.Now() + settings_.period;
    const auto report = Run(/*repair=*/false, [](uint64_t, uint64_t) {});
    if (!report.ok()) {
      edges_.log.Warn("audit_failed", {{"error", report.status()}});
    } else if (!report->differences.empty()) {
      edges_.log.Warn("audit_differences", {{"count", report->differences.size()},
                                            {"first", NameOf(report->differences[0].kind)},
                                            {"node", report->differences[0].node.name}});
    }
  }
}

// Asks the cloud, waits for its answer, and counts it.
CloudListing AuditJob::AwaitListing() const {
  struct Awaited {
    absl::Notification done;
    CloudListing listing = absl::UnavailableError("it is not there yet");
  };
  const absl::Time begin = edges_.clock.Now();
  // Shared with the cloud, whose listing may come after nobody waits for it any more.
  const auto awaited = std::make_shared<Awaited>();
  edges_.cloud.List([awaited](CloudListing listing) {
    awaited->listing = std::move(listing);
    awaited->done.Notify();
  });
  CloudListing listing = absl::UnavailableError("the cloud has not listed all in time");
  if (awaited->done.WaitForNotificationWithTimeout(kMostListing)) {
    listing = std::move(awaited->listing);
  }
  if (edges_.metrics != nullptr) {
    edges_.metrics->CountCloudCall(CloudCall::kList, listing.status(), edges_.clock.Now() - begin);
  }
  return listing;
}

void AuditJob::ListCloud() {
  CloudListing listing = AwaitListing();
  if (!listing.ok()) {
    edges_.log.Warn("cloud_list_failed", {{"error", listing.status()}});
    edges_.loop.PostListingFailed(listing.status());
    return;
  }
  edges_.loop.PostListing(*std::move(listing), [this](const std::string& instance) {
    return edges_.cloud.Covers(instance);
  });
}

absl::Status AuditJob::TakeSnapshot(const Progress& progress, AuditSnapshot& snapshot) {
  RETURN_IF_ERROR(AskLoop(edges_.loop, kLoopPatience, [&](const FleetView& view) {
    snapshot.connected = view.sessions.size();
    for (const PoolEntry& entry : view.fleet.ledger.pools()) snapshot.Add(entry);
  }));
  const auto visit = [&](const FleetView& view, const NodeRecord& record) {
    snapshot.Add(record, view.fleet.ledger.quarantine());
  };
  return VisitNodes(edges_.loop, kLoopPatience, visit, progress);
}

void AuditJob::CollectInventories(AuditSnapshot& snapshot) {
  {
    absl::MutexLock lock(&mutex_);
    inventories_.clear();
  }
  edges_.loop.PostAskInventories([this](const NodeKey& key, node_api::Inventory inventory) {
    absl::MutexLock lock(&mutex_);
    inventories_.insert_or_assign(key, std::move(inventory));
  });
  absl::MutexLock lock(&mutex_);
  const auto complete = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopped_ || inventories_.size() >= snapshot.connected;
  };
  mutex_.AwaitWithTimeout(absl::Condition(&complete), settings_.patience);
  snapshot.inventories = std::exchange(inventories_, {});
}

absl::StatusOr<AuditReport> AuditJob::Run(bool repair, const Progress& progress) {
  absl::MutexLock lock(&one_at_a_time_);
  absl::StatusOr<AuditReport> report = RunOne(repair, progress);
  if (!report.ok()) {
    if (edges_.metrics != nullptr) edges_.metrics->CountAuditFailed();
    return report;
  }
  if (edges_.metrics != nullptr) Count(*report);
  absl::MutexLock publish(&mutex_);
  last_ = *report;
  return report;
}

// What is left, and what was repaired.
void AuditJob::Count(const AuditReport& report) const {
  std::map<std::string, uint64_t> left;
  uint64_t repairs = 0;
  for (size_t i = 0; i < report.differences.size(); ++i) {
    if (report.repaired[i]) {
      ++repairs;
    } else {
      ++left[std::string(NameOf(report.differences[i].kind))];
    }
  }
  // What the cloud would show has not gone because it does not answer.
  if (report.cloud.ok()) {
    edges_.metrics->CountAudit(left, report.at);
  } else {
    edges_.metrics->CountAuditFailed();
  }
  edges_.metrics->CountAuditRepairs(repairs);
}

absl::StatusOr<AuditReport> AuditJob::RunOne(bool repair, const Progress& progress) {
  AuditSnapshot snapshot;
  CloudListing listing = AwaitListing();
  if (!listing.ok()) edges_.log.Warn("cloud_list_failed", {{"error", listing.status()}});
  RETURN_IF_ERROR(TakeSnapshot(progress, snapshot));
  const absl::Status listed = listing.status();
  if (listing.ok()) snapshot.listing = *std::move(listing);
  CollectInventories(snapshot);
  AuditReport report{.at = edges_.clock.Now(), .agents_asked = snapshot.connected, .cloud = listed};
  report.agents_silent =
      snapshot.connected - std::min<uint64_t>(snapshot.connected, snapshot.inventories.size());
  report.differences = Audit(snapshot.Finish(), settings_.policy, report.at);
  memory_.Remember(report.differences, report.at, /*whole=*/listed.ok());
  report.repaired.resize(report.differences.size());
  for (size_t i = 0; repair && i < report.differences.size(); ++i) {
    ASSIGN_OR_RETURN(const bool repaired, Repair(report.differences[i], snapshot));
    report.repaired[i] = repaired;
  }
  return report;
}

absl::StatusOr<bool> AuditJob::Repair(const AuditDifference& difference,
                                      const AuditSnapshot& snapshot) {
  if (difference.repair == AuditRepair::kNone) return false;
  Compared compared = ComparedOf(difference, snapshot);
  bool repaired = false;
  RETURN_IF_ERROR(ChangeInLoop(
      edges_.loop, kLoopPatience,
      [&repaired, difference, compared = std::move(compared), now = edges_.clock.Now()](
          ServerState& state, RawRecords&) -> absl::StatusOr<Effects> {
        std::optional<Effects> effects = ipam::Repair(state.fleet, difference, compared, now);
        repaired = effects.has_value();
        return repaired ? *std::move(effects) : Effects();
      }));
  const std::initializer_list<telemetry::Field> fields = {{"kind", NameOf(difference.kind)},
                                                          {"node", difference.node.name},
                                                          {"repair", NameOf(difference.repair)}};
  if (repaired) {
    edges_.log.Info("audit_repaired", fields);
  } else {
    edges_.log.Info("audit_repair_skipped", fields);
  }
  return repaired;
}

std::optional<AuditReport> AuditJob::Last() const {
  absl::MutexLock lock(&mutex_);
  return last_;
}

}  // namespace spoke::ipam
