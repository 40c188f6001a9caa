#include "ipam-server/jobs/fleet_loop.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "fmt/core.h"
#include "ipam-server/store/record_codec.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

constexpr absl::Duration kCloudRetryDelay = absl::Seconds(5);

NicAddresses NicOf(const NodeRecord& record) {
  NicAddresses nic{.node = record.key, .nic_mac = record.nic_mac};
  for (const auto& [address, held] : record.addresses) {
    if (held.state != LeaseState::kAttaching && held.state != LeaseState::kAttached) continue;
    nic.configurations.push_back({held.configuration, address});
  }
  return nic;
}

void LogFinding(telemetry::Log& log, const Finding& finding) {
  const auto write = [&](telemetry::Level level, std::string_view event) {
    log.Write(level, event,
              {{"node", finding.node.name},
               {"address", finding.address.ToString()},
               {"detail", finding.detail}});
  };
  switch (finding.kind) {
    case Finding::Kind::kAdopted:
      return write(telemetry::Level::kWarn, "address_adopted");
    case Finding::Kind::kHeldElsewhere:
      return write(telemetry::Level::kError, "address_conflict");
    case Finding::Kind::kForeign:
      return write(telemetry::Level::kWarn, "address_foreign");
  }
}

}  // namespace

FleetLoop::FleetLoop(std::vector<PoolSpec> pools, const FleetPolicy& policy, const Edges& edges)
    : pools_(std::move(pools)),
      policy_(policy),
      store_(edges.store),
      agents_(edges.agents),
      cloud_(edges.cloud),
      clock_(edges.clock),
      log_(edges.log),
      fleet_(pools_, policy_) {}

absl::Status FleetLoop::Load() {
  Fleet fleet(pools_, policy_);
  std::map<std::string, int64_t> revisions;
  absl::Status first_error;
  const absl::Status listed =
      store_.List(kNodeKeyPrefix, [&](std::string_view key, const StoredRecord& stored) {
        auto record = DecodeNode(stored.value);
        first_error.Update(base::Annotate(record.status(), fmt::format("store key {}", key)));
        if (!record.ok()) return;
        first_error.Update(fleet.Load(*std::move(record)));
        revisions.emplace(key, stored.revision);
      });
  RETURN_IF_ERROR(base::Annotate(listed, "load node records"));
  RETURN_IF_ERROR(first_error);
  fleet_ = std::move(fleet);
  revisions_ = std::move(revisions);
  return absl::OkStatus();
}

std::vector<NicAddresses> FleetLoop::AllNics() const {
  std::vector<NicAddresses> nics;
  for (const auto& [key, record] : fleet_.nodes()) nics.push_back(NicOf(record));
  return nics;
}

void FleetLoop::PostHello(SessionId session, Hello hello) {
  Post(HelloEvent{session, std::move(hello)});
}
void FleetLoop::PostReport(SessionId session, LendingReport report) {
  Post(ReportEvent{session, std::move(report)});
}
void FleetLoop::PostDesiredAck(SessionId session, uint64_t version) {
  Post(AckEvent{session, version});
}
void FleetLoop::PostClosed(SessionId session) { Post(ClosedEvent{session}); }
void FleetLoop::PostCloudResult(const NodeKey& node, absl::StatusOr<NicAddresses> result) {
  Post(CloudEvent{node, std::move(result)});
}
void FleetLoop::PostQuery(std::function<void(const FleetView&)> query) {
  Post(QueryEvent{std::move(query)});
}

void FleetLoop::Post(Event event) {
  absl::MutexLock lock(&mutex_);
  mailbox_.push_back(std::move(event));
}

void FleetLoop::Run() {
  // What was being attached when the last process ended is asked for again.
  for (const auto& [key, record] : fleet_.nodes()) {
    if (CountAddresses(record).attaching > 0) cloud_.Request(NicOf(record));
  }
  while (RunOnce(absl::Seconds(1))) {
  }
}

void FleetLoop::Stop() {
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
}

bool FleetLoop::RunOnce(absl::Duration wait) {
  std::vector<Event> events;
  {
    absl::MutexLock lock(&mutex_);
    const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return stopped_ || !mailbox_.empty();
    };
    mutex_.AwaitWithTimeout(absl::Condition(&ready), wait);
    if (stopped_) return false;
    events.swap(mailbox_);
  }
  Batch batch;
  for (Event& event : events) {
    std::visit([&](auto& e) { Handle(std::move(e), batch); }, event);
  }
  RetryCloud(batch);
  if (const absl::Status status = CommitBatch(batch); !status.ok()) {
    RecoverFromFailedCommit(status, batch);
  } else {
    CarryOut(batch);
  }
  return true;
}

void FleetLoop::Handle(HelloEvent event, Batch& batch) {
  const NodeKey key = event.hello.key;
  const auto [it, inserted] = sessions_.try_emplace(key);
  if (!inserted) {
    // The newer session wins: the older is what a broken connection left behind, or a second agent.
    log_.Warn("session_replaced", {{"node", key.name}, {"vm", key.vm_id}});
    nodes_by_session_.erase(it->second.id);
    agents_.Close(it->second.id, absl::AbortedError("another session of this node took over"));
  }
  it->second = Session{.id = event.session};
  nodes_by_session_[event.session] = key;
  batch.effects.Merge(fleet_.OnHello(event.hello, clock_.Now()));
  batch.effects.desired.insert(key);
  batch.answers.emplace_back(event.session,
                             Welcome{.session_epoch = fleet_.Find(key)->session_epoch});
  batch.read_next.push_back(event.session);
  log_.Info("agent_connected", {{"node", key.name},
                                {"vm", key.vm_id},
                                {"version", event.hello.agent_version},
                                {"lent", event.hello.lent.size()}});
}

void FleetLoop::Handle(const ReportEvent& event, Batch& batch) {
  const NodeKey* key = NodeOf(event.session);
  if (key == nullptr) return;
  batch.effects.Merge(fleet_.OnReport(*key, event.report, clock_.Now()));
  batch.answers.emplace_back(event.session, ReportAck{.sequence = event.report.sequence});
  batch.read_next.push_back(event.session);
}

void FleetLoop::Handle(AckEvent event, Batch& batch) {
  const NodeKey* key = NodeOf(event.session);
  if (key == nullptr) return;
  Session& session = sessions_.at(*key);
  session.acked_version =
      std::max(session.acked_version, std::min(event.version, session.desired_version));
  batch.read_next.push_back(event.session);
}

void FleetLoop::Handle(ClosedEvent event, Batch& batch) {
  (void)batch;
  const auto it = nodes_by_session_.find(event.session);
  if (it == nodes_by_session_.end()) return;
  log_.Info("agent_disconnected", {{"node", it->second.name}, {"vm", it->second.vm_id}});
  sessions_.erase(it->second);
  nodes_by_session_.erase(it);
}

void FleetLoop::Handle(CloudEvent event, Batch& batch) {
  const std::string topic = "cloud " + event.node.name;
  if (!event.result.ok()) {
    cloud_retries_[event.node] = clock_.Now() + kCloudRetryDelay;
    if (!problems_by_topic_.contains(topic)) {
      log_.Warn("cloud_apply_failed",
                {{"node", event.node.name}, {"error", event.result.status()}});
    }
    SetProblem(topic, fmt::format("attaching addresses to node {} fails: {}", event.node.name,
                                  base::MessageOf(event.result.status())));
    return;
  }
  SetProblem(topic, "");
  std::vector<ip::Address> addresses;
  for (const IpConfiguration& configuration : event.result->configurations) {
    addresses.push_back(configuration.address);
  }
  batch.effects.Merge(fleet_.OnAttached(event.node, addresses, clock_.Now()));
}

void FleetLoop::Handle(QueryEvent event, Batch& batch) {
  batch.queries.push_back(std::move(event.query));
}

void FleetLoop::RetryCloud(Batch& batch) {
  const absl::Time now = clock_.Now();
  std::erase_if(cloud_retries_, [&](const auto& retry) {
    if (retry.second > now) return false;
    batch.effects.attach.insert(retry.first);
    return true;
  });
}

absl::Status FleetLoop::CommitBatch(const Batch& batch) {
  std::vector<CompareAndPut> puts;
  for (const NodeKey& key : batch.effects.changed) {
    const std::string store_key = StoreKeyOf(key);
    const auto revision = revisions_.find(store_key);
    puts.push_back({.key = store_key,
                    .value = EncodeNode(*fleet_.Find(key)),
                    .expected = revision == revisions_.end() ? 0 : revision->second});
  }
  if (puts.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<int64_t> revisions, store_.Commit(puts));
  for (size_t i = 0; i < puts.size(); ++i) revisions_[puts[i].key] = revisions[i];
  SetProblem("store", "");
  return absl::OkStatus();
}

void FleetLoop::CarryOut(Batch& batch) {
  for (const Finding& finding : batch.effects.findings) LogFinding(log_, finding);
  for (auto& [session, answer] : batch.answers) agents_.Send(session, std::move(answer));
  for (const NodeKey& key : batch.effects.desired) {
    const auto session = sessions_.find(key);
    if (session == sessions_.end()) continue;
    agents_.Send(session->second.id,
                 NextDesired(fleet_, *fleet_.Find(key), clock_.Now(), session->second));
  }
  for (const NodeKey& key : batch.effects.attach) {
    if (const NodeRecord* record = fleet_.Find(key); record != nullptr) {
      cloud_.Request(NicOf(*record));
    }
  }
  for (const SessionId session : batch.read_next) agents_.ReadNext(session);
  const FleetView view{fleet_, sessions_, problems_};
  for (const auto& query : batch.queries) query(view);
}

// Memory is ahead of the store now, so it goes back to what the store says, and every agent whose
// message was not answered begins again. Queries are still served.
void FleetLoop::RecoverFromFailedCommit(const absl::Status& why, const Batch& batch) {
  if (!problems_by_topic_.contains("store")) log_.Error("store_commit_failed", {{"error", why}});
  SetProblem("store", fmt::format("nothing can be stored: {}", base::MessageOf(why)));
  if (const absl::Status loaded = Load(); !loaded.ok()) {
    log_.Error("store_reload_failed", {{"error", loaded}});
  }
  std::vector<SessionId> unanswered = batch.read_next;
  for (const NodeKey& key : batch.effects.changed) {
    if (const auto it = sessions_.find(key); it != sessions_.end()) {
      unanswered.push_back(it->second.id);
    }
  }
  for (const SessionId session : unanswered) {
    const auto node = nodes_by_session_.find(session);
    if (node == nodes_by_session_.end()) continue;
    sessions_.erase(node->second);
    nodes_by_session_.erase(node);
    agents_.Close(session, absl::UnavailableError("the server cannot store changes now"));
  }
  // What the cloud has answered meanwhile is forgotten with the rest, so whatever the store has as
  // attaching is asked for again: asking twice has the effect of asking once.
  for (const NodeKey& key : batch.effects.changed) {
    const NodeRecord* record = fleet_.Find(key);
    if (record == nullptr || CountAddresses(*record).attaching == 0) continue;
    cloud_retries_[key] = clock_.Now() + kCloudRetryDelay;
  }
  const FleetView view{fleet_, sessions_, problems_};
  for (const auto& query : batch.queries) query(view);
}

void FleetLoop::SetProblem(const std::string& topic, const std::string& text) {
  if (text.empty()) {
    if (problems_by_topic_.erase(topic) == 0) return;
    log_.Info("problem_over", {{"topic", topic}});
  } else {
    problems_by_topic_[topic] = text;
  }
  problems_.clear();
  for (const auto& [unused, problem] : problems_by_topic_) problems_.push_back(problem);
}

const NodeKey* FleetLoop::NodeOf(SessionId session) const {
  const auto it = nodes_by_session_.find(session);
  return it == nodes_by_session_.end() ? nullptr : &it->second;
}

}  // namespace spoke::ipam
