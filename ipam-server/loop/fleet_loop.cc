// The turn of the loop. What each event does is in fleet_loop_events.cc, what is done some in each
// turn in fleet_loop_slices.cc, and what happens when nothing can be stored in fleet_loop_store.cc.
#include "ipam-server/loop/fleet_loop.h"

#include <algorithm>

#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(100);
// The work of what agents say, in one turn: well below 50 ms, its commit included.
constexpr size_t kWorkPerTurn = 1000;
// As many messages are stored at once, whatever could still be gathered.
constexpr size_t kWorthACommit = 64;
// The nodes waiting for addresses at which no more agents are welcomed: otherwise the first would
// have all of theirs only with the last.
constexpr size_t kMostWaitingForPlan = 32;
// How long changes, and queries, of operators are dealt with in one turn, if there are several.
constexpr absl::Duration kOperatorTime = absl::Milliseconds(5);
// How soon it is looked whether the store has been read anew.
constexpr absl::Duration kReloadTick = absl::Milliseconds(5);

}  // namespace

FleetLoop::FleetLoop(ServerSettings settings, LoadedState loaded, const Edges& edges)
    : settings_(std::move(settings)),
      edges_(edges),
      state_(std::move(loaded.state)),
      writer_(edges.store),
      last_tick_(edges.clock.Now()) {
  writer_.Reset(std::move(loaded.revisions), loaded.newest_chunk);
  changed_by_loading_ = std::move(loaded.changed);
  FindWithAddresses();
  if (edges_.witness != nullptr) {
    state_.recovery.Begin(edges_.witness->found(), edges.clock.Now(), edges_.leadership);
  }
  if (!state_.recovery.open()) state_.fleet.hold.active = true;
  TellRecovery(edges_.clock.Now());
}

void FleetLoop::PostHello(SessionId session, node_api::Hello hello, bool instance_proved) {
  edges_.mailbox.Post(HelloEvent{session, std::move(hello), instance_proved});
}
void FleetLoop::PostListing(std::vector<NicAddresses> nics,
                            std::function<bool(const std::string& instance)> covers) {
  edges_.mailbox.Post(AgentEvent(ListingEvent{std::move(nics), std::move(covers)}));
}
void FleetLoop::PostListingFailed(absl::Status why) {
  edges_.mailbox.Post(AgentEvent(ListingEvent{.failure = std::move(why)}));
}
void FleetLoop::PostQuery(std::function<void(const FleetView&)> query) {
  edges_.mailbox.Post(QueryEvent{std::move(query)});
}
void FleetLoop::PostChange(std::function<absl::StatusOr<Effects>(ServerState&, RawRecords&)> change,
                           std::function<void(const absl::Status&)> done) {
  edges_.mailbox.Post(OperatorEvent(ChangeEvent{std::move(change), std::move(done)}));
}

void FleetLoop::Begin() {
  if (state_.recovery.open()) {
    BeginCloud();
    if (!settings_.fleet.cloud_chooses) FindUnheard();
    attach_waiting_.merge(NodesToAsk(state_.fleet));
  }
  TellObjects();
}

void FleetLoop::Run() {
  Begin();
  while (RunOnce(absl::Seconds(1))) {
  }
  RememberMark(edges_.clock.Now(), /*at_once=*/true);
}

// Returns how long there is nothing to do, if nobody says anything.
absl::Duration FleetLoop::Patience(absl::Duration wait) const {
  if (reloading_ != nullptr) return std::min(wait, kReloadTick);
  const bool goes_on = !plan_waiting_.empty() || !tell_waiting_.empty() || listed_.has_value() ||
                       (state_.recovery.open() && !attach_waiting_.empty());
  if ((writable_ && goes_on) || publisher_.counting()) return absl::ZeroDuration();
  const bool ticks = !policy_waiting_.empty() || !forecasts_.empty() || !traces_.empty() ||
                     !probes_.empty() || !trials_.empty() || !node_data_.empty() ||
                     review_credit_ >= 1;
  return ticks ? std::min(wait, kTick) : wait;
}

absl::Duration FleetLoop::Gathering() const {
  if (settings_.gather == absl::ZeroDuration()) return absl::ZeroDuration();
  const absl::Duration passed = edges_.clock.Now() - gathers_since_;
  if (passed < absl::ZeroDuration() || passed >= settings_.gather ||
      edges_.mailbox.waiting_agents() + edges_.mailbox.waiting_hellos() >= kWorthACommit) {
    return absl::ZeroDuration();
  }
  return settings_.gather - passed;
}

bool FleetLoop::RunOnce(absl::Duration wait) {
  const absl::Duration gathering = Gathering();
  if (gathering > absl::ZeroDuration()) wait = std::min(wait, gathering);
  auto taken =
      edges_.mailbox.Take(Patience(wait), {.agents = writable_ && gathering == absl::ZeroDuration(),
                                           .hellos = plan_waiting_.size() < kMostWaitingForPlan,
                                           .queries = reloading_ == nullptr,
                                           .work = kWorkPerTurn});
  if (!taken) return false;
  if (edges_.heartbeat != nullptr) edges_.heartbeat->Beat();
  Batch batch{.now = edges_.clock.Now()};
  FinishReload();
  if (!writable_) TryToRecover(batch);
  if (writable_) {
    batch.effects.changed.merge(std::exchange(changed_by_loading_, {}));
    batch.effects.resend.merge(std::exchange(tell_anew_, {}));
  }
  HandleChanges(batch);
  for (AgentEvent& event : taken->agents) {
    std::visit([&](auto& e) { Handle(std::move(e), batch); }, event);
  }
  for (HelloEvent& event : taken->hellos) Handle(std::move(event), batch);
  if (writable_) KeepTime(batch);
  traces_.Expire(batch.now);
  probes_.Expire(batch.now);
  trials_.Expire(batch.now);
  node_data_.Expire(batch.now);
  const uint64_t commits = counters_.commits;
  Commit(batch);
  // Other commits must not hold agents up: those of operators and of plans may follow one another.
  if (gathering == absl::ZeroDuration() && counters_.commits != commits) {
    gathers_since_ = edges_.clock.Now();
  }
  if (edges_.metrics != nullptr) {
    publisher_.Step({state_, sessions_, edges_.mailbox, edges_.store, writable_}, batch.now,
                    *edges_.metrics);
    edges_.metrics->CountTurn(edges_.clock.Now() - batch.now);
  }
  return true;
}

void FleetLoop::HandleChanges(Batch& batch) {
  do {
    auto event = edges_.mailbox.NextChange();
    if (!event) return;
    std::visit([&](auto& e) { Handle(std::move(e), batch); }, *event);
  } while (edges_.clock.Now() - batch.now < kOperatorTime);
}

void FleetLoop::RememberCounters(absl::Time now) {
  if (!past_counters_.empty() && now - past_counters_.back().first < absl::Seconds(1)) return;
  past_counters_.emplace_back(now, counters_);
  while (now - past_counters_.front().first > absl::Minutes(1)) past_counters_.pop_front();
}

LoopRates FleetLoop::Rates(absl::Time now) const {
  if (past_counters_.empty()) return {};
  const auto& [since, then] = past_counters_.front();
  const double seconds = std::max(1.0, absl::ToDoubleSeconds(now - since));
  const auto rate = [&](uint64_t present, uint64_t past) {
    return static_cast<double>(present - past) / seconds;
  };
  return {.assignments = rate(counters_.assignments, then.assignments),
          .releases = rate(counters_.releases, then.releases),
          .commits = rate(counters_.commits, then.commits)};
}

void FleetLoop::Commit(Batch& batch) {
  const absl::Time begin = edges_.clock.Now();
  const RecoveryState next = state_.recovery.Next();
  const auto stored = writer_.Commit({batch.effects, batch.raw, state_.fleet, next}, batch.now);
  const bool empty = stored.ok() && *stored == 0;
  if (edges_.metrics != nullptr && !empty) {
    edges_.metrics->CountCommit(stored.status(), stored.value_or(0), edges_.clock.Now() - begin);
  }
  if (!stored.ok()) {
    Fail(stored.status(), batch);
    return;
  }
  if (!empty) {
    ++counters_.commits;
    state_.recovery.Committed();
    token_.clear();
  }
  for (std::string& node : writer_.TakeOmitted()) {
    edges_.log.Warn("history_omitted", {{"node", std::move(node)}});
  }
  UpdateWithAddresses(batch.effects.changed);
  RememberMark(batch.now, /*at_once=*/false);
  CountEffects(batch.effects);
  CarryOut(batch);
}

void FleetLoop::CountEffects(const Effects& effects) const {
  if (edges_.metrics == nullptr) return;
  for (const absl::Duration took : effects.attach_times) edges_.metrics->CountAttached(took);
}

// What an agent is to say anew has not been taken as it was said: it must not pass for stored.
void FleetLoop::SendAnswers(Batch& batch) {
  for (auto& [session, answer] : batch.answers) {
    const NodeKey* const node = NodeOf(session);
    if (std::holds_alternative<node_api::ReportAck>(answer) && node != nullptr &&
        batch.effects.greet_anew.contains(*node)) {
      continue;
    }
    edges_.agents.Send(session, std::move(answer));
  }
}

void FleetLoop::CarryOut(Batch& batch) {
  if (state_.recovery.open() && !cloud_begun_) BeginCloud();
  EndCloudProblems(batch.effects);
  TellNodesGone(batch.effects);  // It comes before one that is back after all is welcomed.
  SendAnswers(batch);
  if (!state_.recovery.open()) {
    // Nobody is told, asked for, or given anything from a store that may be old.
    batch.effects.resend.clear();
    batch.effects.desired.clear();
    batch.effects.reclaim.clear();
    batch.effects.end_assignments.clear();
    batch.effects.attach.clear();
  }
  for (const auto& [key, why] : batch.effects.greet_anew) GreetAnew(key, why);
  for (const NodeKey& key : batch.effects.resend) {
    // The next one is to be a full one.
    if (const auto session = sessions_.find(key); session != sessions_.end()) {
      session->second.full_due = true;
      batch.effects.desired.insert(key);
    }
  }
  for (const NodeKey& key : batch.effects.desired) {
    const auto session = sessions_.find(key);
    const NodeRecord* record = state_.fleet.ledger.Find(key);
    if (session == sessions_.end() || record == nullptr) continue;
    node_api::DesiredState next = NextDesired(state_.fleet, *record, batch.now, session->second);
    if (edges_.witness != nullptr) {
      if (token_.empty()) {
        token_ = edges_.witness->Sign(state_.recovery.Mark(with_addresses_.size()));
      }
      next.store_token = token_;
    }
    edges_.agents.Send(session->second.id, std::move(next));
  }
  for (auto& [key, ranges] : batch.effects.reclaim) AskToReclaim(key, std::move(ranges));
  for (auto& [key, ends] : batch.effects.end_assignments) {
    const auto session = sessions_.find(key);
    if (session == sessions_.end()) continue;
    for (node_api::EndAssignment& end : ends)
      edges_.agents.Send(session->second.id, std::move(end));
  }
  for (const NodeKey& key : batch.answered) {
    const auto session = sessions_.find(key);
    if (session != sessions_.end() && session->second.reclaim_pending == 0) {
      AskForNext(key, session->second);
    }
  }
  retry_waiting_.merge(batch.effects.retry);
  attach_waiting_.merge(batch.effects.attach);
  // Until the store has been read anew memory may be ahead of it, and nobody hears what it has.
  if (!reload_due_) {
    RequestSome();
    SendForecasts(batch.now);
    SpreadPolicy();
    TellObjects();
  }
  for (const SessionId session : batch.read_next) edges_.agents.ReadNext(session);
  LogFindings(batch.effects.findings);
  TellRecovery(batch.now);
  TellDoubled();
  SetProblem("releases", state_.fleet.breaker.frozen() ? state_.fleet.breaker.state().freeze->reason
                                                       : std::string());
  for (const auto& done : batch.done) done(absl::OkStatus());
  Answer(batch);
}

// Answers the queries that wait by now, as long as there is time: what they see is stored. They
// wait while the store is read anew, since memory may be ahead of it.
void FleetLoop::Answer(const Batch& batch) {
  const absl::Time begin = edges_.clock.Now();
  while (reloading_ == nullptr) {
    const auto event = edges_.mailbox.NextQuery();
    if (!event) return;
    event->query(View(batch.now));
    if (edges_.clock.Now() - begin >= kOperatorTime) return;
  }
}

// One request at a time, so that an answer is always about what has not moved since it was asked.
void FleetLoop::AskToReclaim(const NodeKey& node, std::vector<ip::Prefix> ranges) {
  const auto it = sessions_.find(node);
  if (it == sessions_.end()) return;  // A later review asks again.
  std::vector<ip::Prefix>& next = it->second.reclaim_next;
  for (const ip::Prefix& range : ranges) {
    if (std::find(next.begin(), next.end(), range) == next.end()) next.push_back(range);
  }
  if (it->second.reclaim_pending == 0) AskForNext(node, it->second);
}

void FleetLoop::AskForNext(const NodeKey& node, Session& session) {
  const NodeRecord* record = state_.fleet.ledger.Find(node);
  std::vector<ip::Prefix> ranges = std::exchange(session.reclaim_next, {});
  std::erase_if(ranges, [&](const ip::Prefix& range) {
    const Configuration* held = record == nullptr ? nullptr : record->Holding(range.base());
    return held == nullptr || held->range != range || held->state != AddressState::kAttached;
  });
  if (ranges.empty()) return;
  session.reclaim_pending = ++session.last_request;
  session.reclaim_asked = ranges;
  std::sort(session.reclaim_asked.begin(), session.reclaim_asked.end());
  if (edges_.metrics != nullptr)
    edges_.metrics->CountReclaim(ReclaimOutcome::kAsked, ranges.size());
  edges_.agents.Send(session.id,
                     node_api::ReclaimRequest{session.reclaim_pending, std::move(ranges)});
}

// --- What is told to others of this program. ---

void FleetLoop::TellObjects() {
  if (!edges_.on_objects || objects_told_ == state_.objects.version()) return;
  objects_told_ = state_.objects.version();
  edges_.on_objects(state_.objects);
}

// Whether the cloud is asked for the machine until it has done so: what it refuses else is no
// problem, and nothing would ever end it.
bool FleetLoop::NeedsCloud(const NodeKey& node) const {
  const NodeRecord* record = state_.fleet.ledger.Find(node);
  if (record == nullptr || !MayAskCloud(*record)) return false;
  return !record->configurations.empty() || !record->wanted.empty();
}

void FleetLoop::EndCloudProblems(const Effects& effects) {
  if (problems_by_topic_.empty()) return;
  for (const NodeKey& node : effects.changed) {
    if (!NeedsCloud(node)) SetProblem(CloudTopicOf(node), "");
  }
}

// A machine that has another key now holds nothing under the one before.
void FleetLoop::TellNodesGone(const Effects& effects) {
  if (!edges_.on_node_gone) return;
  for (const Finding& finding : effects.findings) {
    if (finding.kind == Finding::Kind::kGone) edges_.on_node_gone(finding.node);
  }
  for (const auto& [former, present] : effects.renamed) edges_.on_node_gone(former);
}

void FleetLoop::SetProblem(const std::string& topic, const std::string& text) {
  const auto it = problems_by_topic_.find(topic);
  if (text.empty()) {
    if (it == problems_by_topic_.end()) return;
    problems_by_topic_.erase(it);
    edges_.log.Info("problem_over", {{"topic", topic}});
  } else if (it != problems_by_topic_.end() && it->second == text) {
    return;
  } else {
    problems_by_topic_[topic] = text;
  }
}

std::vector<std::string> FleetView::ProblemTexts() const {
  std::vector<std::string> texts;
  for (const auto& [topic, text] : problems) texts.push_back(text);
  return texts;
}

FleetView FleetLoop::View(absl::Time now) {
  return {state_,         state_.fleet, sessions_,  problems_by_topic_,
          cloud_retries_, edges_.cloud, Rates(now), now};
}

const NodeKey* FleetLoop::NodeOf(SessionId session) const {
  const auto it = nodes_by_session_.find(session);
  return it == nodes_by_session_.end() ? nullptr : &it->second;
}

}  // namespace spoke::ipam
