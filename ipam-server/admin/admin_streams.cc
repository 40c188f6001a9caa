// The calls that go on for a while.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "fmt/core.h"
#include "ipam-server/admin/admin_service.h"
#include "ipam-server/admin/policy_probe.h"
#include "ipam-server/operators/caller.h"
#include "ipam-server/store/backup_file.h"
#include "lib/base/status.h"
#include "lib/os/unique_fd.h"

namespace spoke::ipam {
namespace {

constexpr size_t kBackupPiece = 256 << 10;
constexpr int kEventsPerMessage = 500;
// How long a follower's call sleeps before it looks whether the caller is still there.
constexpr absl::Duration kFollowPatience = absl::Seconds(1);

std::string_view NameOf(telemetry::Level level) {
  switch (level) {
    case telemetry::Level::kDebug:
      return "debug";
    case telemetry::Level::kInfo:
      return "info";
    case telemetry::Level::kWarn:
      return "warning";
    case telemetry::Level::kError:
      return "error";
  }
  return "info";
}

void DescribeReport(const AuditReport& report, v1::AuditResponse& out) {
  out.set_done(true);
  out.set_agents_asked(report.agents_asked);
  out.set_agents_silent(report.agents_silent);
  out.set_cloud_error(std::string(base::MessageOf(report.cloud)));
  for (size_t i = 0; i < report.differences.size(); ++i) {
    const AuditDifference& difference = report.differences[i];
    v1::AuditDifference& row = *out.add_differences();
    row.set_kind(std::string(NameOf(difference.kind)));
    row.set_node(difference.node.name);
    row.set_vm_id(difference.node.vm_id);
    if (difference.address) row.set_address(difference.address->ToString());
    row.set_first_seen_unix_ms(absl::ToUnixMillis(difference.first_seen));
    row.set_cause(difference.cause);
    row.set_repair(std::string(NameOf(difference.repair)));
    row.set_repaired(report.repaired[i]);
  }
}

bool IsAbout(const LoggedEvent& event, const std::string& node) {
  return node.empty() || std::any_of(event.fields.begin(), event.fields.end(), [&](const auto& f) {
           return f.first == "node" && f.second == node;
         });
}

// Removes the file at the end of the scope, whatever way it is left.
class ScratchFile {
 public:
  explicit ScratchFile(std::string path) : path_(std::move(path)) {}
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  ~ScratchFile() { ::unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

// A store that cannot be written, or a loop that does not turn,
// must not keep an operator from what helps then, a backup above all; the log has who it was.
absl::Status AdminService::RecordCall(const Context& context, ChangeSummary& summary) {
  const absl::Status kept =
      Do(context, summary, [](ServerState&, RawRecords&) { return Effects(); });
  if (!absl::IsUnavailable(kept) && !absl::IsDeadlineExceeded(kept)) return kept;
  ASSIGN_OR_RETURN(const Operator who, CallerOf(context, edges_.time_of_day.Now()));
  telemetry::Log& log = edges_.events;
  log.Warn("operator_record_not_stored", {{"who", who.name},
                                          {"role", NameOf(who.role)},
                                          {"from", who.from},
                                          {"method", summary.method},
                                          {"what", summary.what},
                                          {"error", kept}});
  return absl::OkStatus();
}

absl::Status AdminService::Audit(const Context& context, const v1::AuditRequest& request,
                                 Writer<v1::AuditResponse>& writer) {
  if (request.repair()) {
    // The record comes before: the repairs are the loop's own, one by one.
    ChangeSummary summary{.method = "Audit", .what = "begins to repair what differs"};
    RETURN_IF_ERROR(Do(context, summary, [](ServerState&, RawRecords&) { return Effects(); }));
  }
  uint64_t nodes = 0;
  ASSIGN_OR_RETURN(const auto report,
                   edges_.audit.Run(request.repair(), [&](uint64_t done, uint64_t total) {
                     nodes = total;
                     v1::AuditResponse progress;
                     progress.set_nodes_done(done);
                     progress.set_nodes_total(total);
                     if (!context.IsCancelled()) writer.Write(progress);
                   }));
  v1::AuditResponse last;
  last.set_nodes_done(nodes);
  last.set_nodes_total(nodes);
  DescribeReport(report, last);
  RETURN_IF_ERROR(Ask(context, [&](const FleetView& view) {
    const BreakerState& breaker = view.fleet.breaker.state();
    if (breaker.freeze) last.set_releases_frozen(breaker.freeze->reason);
  }));
  writer.Write(last);
  return absl::OkStatus();
}

absl::Status AdminService::VerifyPolicy(const Context& context,
                                        const v1::VerifyPolicyRequest& request,
                                        Writer<v1::VerifyPolicyResponse>& writer) {
  absl::StatusOr<ProbePlan> plan;
  std::vector<std::string> nodes(request.nodes().begin(), request.nodes().end());
  RETURN_IF_ERROR(Ask(context, [&](const FleetView& view) {
    plan = PlanProbes(view.state.objects, request);
    for (const std::string& node : request.nodes()) {
      if (FindByName(view.fleet.ledger, node) != nullptr || !plan.ok()) continue;
      plan = absl::NotFoundError(fmt::format("there is no node {}; see: spokectl node list", node));
    }
    if (!nodes.empty()) return;
    for (const auto& [key, session] : view.sessions) nodes.push_back(key.name);
    nodes = ChooseNodes(nodes);
  }));
  RETURN_IF_ERROR(plan.status());
  if (nodes.empty()) {
    return absl::FailedPreconditionError("no agent is connected that could try");
  }
  if (nodes.size() > kMaxProbedNodes) {
    return absl::InvalidArgumentError(
        fmt::format("at most {} nodes can try at once", kMaxProbedNodes));
  }
  // Nodes are to speak to others on an operator's word.
  ChangeSummary summary{
      .method = "VerifyPolicy",
      .what = fmt::format("{} nodes try {} targets", nodes.size(), plan->targets.size())};
  RETURN_IF_ERROR(RecordCall(context, summary));
  std::map<std::string, node_api::ProbeRequest> probes;
  for (const std::string& node : nodes) {
    probes[node] = {.targets = plan->targets, .timeout = plan->timeout};
  }
  AskProbes(edges_.loop, probes,
            [&](const std::string& node, const absl::StatusOr<node_api::ProbeAnswer>& answer) {
              if (!context.IsCancelled()) writer.Write(DescribeProbes(node, *plan, answer));
            });
  return absl::OkStatus();
}

absl::Status AdminService::ListEvents(const Context& context, const v1::ListEventsRequest& request,
                                      Writer<v1::ListEventsResponse>& writer) {
  uint64_t last = 0;
  size_t limit = request.limit() == 0 ? 100 : request.limit();
  const auto send = [&](const std::vector<LoggedEvent>& events) {
    v1::ListEventsResponse batch;
    for (const LoggedEvent& event : events) {
      v1::EventInfo& info = *batch.add_events();
      info.set_unix_ms(absl::ToUnixMillis(event.at));
      info.set_level(std::string(NameOf(event.level)));
      info.set_event(event.event);
      for (const auto& [key, value] : event.fields) (*info.mutable_fields())[key] = value;
      if (batch.events_size() < kEventsPerMessage) continue;
      if (!writer.Write(batch)) return false;
      batch.Clear();
    }
    return batch.events_size() == 0 || writer.Write(batch);
  };
  while (true) {
    std::vector<LoggedEvent> events = edges_.events.Since(last, EventRing::kKept);
    if (!events.empty()) last = events.back().number;
    std::erase_if(events, [&](const auto& event) { return !IsAbout(event, request.node()); });
    if (events.size() > limit) {
      events.erase(events.begin(), events.end() - static_cast<ptrdiff_t>(limit));
    }
    if (!send(events) || !request.follow()) return absl::OkStatus();
    limit = EventRing::kKept;  // The request's limit was for the past only.
    while (edges_.events.Since(last, 1).empty()) {
      if (context.IsCancelled()) return absl::OkStatus();
      edges_.events.Await(last, kFollowPatience);
    }
  }
}

absl::Status AdminService::Backup(const Context& context, const v1::BackupRequest&,
                                  Writer<v1::BackupResponse>& writer) {
  // All that there is leaves the server. The record comes before: it lies in the copy too.
  ChangeSummary summary{.method = "Backup", .what = "takes a copy of the whole store"};
  RETURN_IF_ERROR(RecordCall(context, summary));
  const ScratchFile file(ScratchBackupPath(store_path_, absl::Now()));
  const auto made = edges_.store.Backup(file.path());
  if (!made.ok()) return base::Annotate(made.status(), "back up the store");
  const os::UniqueFd in(::open(file.path().c_str(), O_RDONLY | O_CLOEXEC));
  if (!in.valid()) return base::ErrnoToStatus(errno, "open the backup");
  v1::BackupResponse piece;
  piece.set_total(static_cast<uint64_t>(made->bytes));
  std::string buffer(kBackupPiece, '\0');
  for (uint64_t offset = 0; !context.IsCancelled();) {
    const ssize_t got = ::read(in.get(), buffer.data(), buffer.size());
    if (got < 0) return base::ErrnoToStatus(errno, "read the backup");
    if (got == 0) break;
    piece.set_data(buffer.data(), static_cast<size_t>(got));
    piece.set_offset(offset);
    if (!writer.Write(piece)) break;
    offset += static_cast<uint64_t>(got);
  }
  return absl::OkStatus();
}

}  // namespace spoke::ipam
