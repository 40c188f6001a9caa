// The turn of the loop; what each event does is in fleet_loop_events.cc.
#include "ipam-server/jobs/fleet_loop.h"

#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "ipam-server/jobs/loop_metrics.h"
#include "lib/base/fnv1a.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

// Within it, every node is looked at once for what it should give back.
constexpr absl::Duration kReviewPeriod = absl::Seconds(60);
constexpr absl::Duration kPublishPeriod = absl::Seconds(10);
constexpr absl::Duration kTick = absl::Milliseconds(100);
// A time of day that was set by less is nothing to speak of.
constexpr absl::Duration kClockTolerance = absl::Minutes(1);
constexpr absl::Duration kProbePeriod = absl::Seconds(1);
constexpr absl::Duration kLongestProbePeriod = absl::Seconds(30);
// How many agents are sent a new policy in one turn, so that reports do not wait for all of them.
constexpr size_t kPolicyPerTurn = 256;
// How many nodes a reservation for many is carried out for in one turn; likewise.
constexpr size_t kPlansPerTurn = 128;

// The same for a node every time, and spread evenly over nodes: in [0, 1).
double JitterOf(const NodeKey& key) {
  // Not absl::Hash, which differs from one start to the next.
  return static_cast<double>(base::Fnv1a(key.name) >> 11U) /
         static_cast<double>(uint64_t{1} << 53U);
}

}  // namespace

FleetLoop::FleetLoop(ServerSettings settings, LoadedState loaded, const Edges& edges)
    : settings_(std::move(settings)),
      store_(edges.store),
      agents_(edges.agents),
      cloud_(edges.cloud),
      clock_(edges.clock),
      log_(edges.log),
      metrics_(edges.metrics),
      witness_(edges.witness),
      state_(std::move(loaded.state)),
      writer_(edges.store),
      last_tick_(edges.clock.Now()) {
  writer_.Reset(std::move(loaded.revisions), loaded.newest_chunk);
  nodes_with_addresses_ = state_.fleet.NodesWithAddresses().size();
  if (witness_ != nullptr) state_.recovery.Begin(witness_->found(), edges.clock.Now());
  if (!state_.recovery.open()) state_.fleet.Hold();
  TellRecovery();
}

void FleetLoop::PostHello(SessionId session, Hello hello) {
  mailbox_.Post(HelloEvent{session, std::move(hello)});
}
void FleetLoop::PostCloudResult(const NodeKey& node, absl::StatusOr<NicAddresses> result) {
  mailbox_.Post(AgentEvent(CloudEvent{node, std::move(result)}));
}
void FleetLoop::PostListing(std::vector<NicAddresses> nics,
                            std::function<bool(const std::string& instance)> covers) {
  mailbox_.Post(AgentEvent(ListingEvent{std::move(nics), std::move(covers)}));
}
void FleetLoop::PostQuery(std::function<void(const FleetView&)> query) {
  mailbox_.Post(OperatorEvent(QueryEvent{std::move(query)}));
}
void FleetLoop::PostChange(std::function<absl::StatusOr<Effects>(ServerState&, RawRecords&)> change,
                           std::function<void(const absl::Status&)> done) {
  mailbox_.Post(OperatorEvent(ChangeEvent{std::move(change), std::move(done)}));
}

void FleetLoop::Run() {
  // What was on its way when the last process ended is asked for again.
  if (state_.recovery.open()) {
    BeginCloud();
    for (const NodeKey& key : NodesToAsk(state_.fleet))
      cloud_.Request(NicOf(*state_.fleet.Find(key)));
  }
  TellObjects();
  while (RunOnce(absl::Seconds(1))) {
  }
  RememberMark(clock_.Now(), /*at_once=*/true);
}

bool FleetLoop::RunOnce(absl::Duration wait) {
  if (!policy_waiting_.empty() || !outlooks_.empty() || !traces_.empty() || !probes_.empty()) {
    wait = std::min(wait, kTick);
  }
  if (!plan_waiting_.empty() && writable_) wait = absl::ZeroDuration();
  auto taken = mailbox_.Take(wait, {.agents = writable_});
  if (!taken) return false;
  if (heart_ != nullptr) heart_->Beat();
  Batch batch{.now = clock_.Now()};
  if (!writable_) TryToRecover(batch);
  for (OperatorEvent& event : taken->operators) {
    std::visit([&](auto& e) { Handle(std::move(e), batch); }, event);
  }
  for (AgentEvent& event : taken->agents) {
    std::visit([&](auto& e) { Handle(std::move(e), batch); }, event);
  }
  for (HelloEvent& event : taken->hellos) Handle(std::move(event), batch);
  if (writable_) KeepTime(batch);
  traces_.Expire(batch.now);
  probes_.Expire(batch.now);
  Commit(batch);
  if (metrics_ != nullptr && batch.now - last_published_ >= kPublishPeriod) {
    last_published_ = batch.now;
    PublishState({state_, sessions_, mailbox_, store_, writable_}, batch.now, *metrics_);
  }
  return true;
}

// What time alone makes due.
void FleetLoop::KeepTime(Batch& batch) {
  std::erase_if(cloud_retries_, [&](const auto& retry) {
    if (retry.second > batch.now) return false;
    batch.effects.attach.insert(retry.first);
    return true;
  });
  TryToOpen(batch);
  PlanSome(batch);
  ReviewSome(batch);
  TellIdentities(batch.now);
  RememberCounters(batch.now);
  const absl::Duration set = clock_.SetAhead();
  SetProblem("clock",
             absl::AbsDuration(set) < kClockTolerance
                 ? std::string()
                 : fmt::format("the clock of this machine was set {} by {} since the server began: "
                               "nothing depends on it, but times that are shown are those of "
                               "before until the server is started anew",
                               set > absl::ZeroDuration() ? "ahead" : "back",
                               absl::FormatDuration(
                                   absl::Trunc(absl::AbsDuration(set), absl::Seconds(1)))));
}

void FleetLoop::PlanSome(Batch& batch) {
  for (size_t i = 0; i < kPlansPerTurn && !plan_waiting_.empty(); ++i) {
    const auto next = plan_waiting_.extract(plan_waiting_.begin());
    batch.effects.Merge(state_.fleet.Plan(next.value(), batch.now));
  }
  plan_waiting_.merge(batch.effects.plan);
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
  return {.lends = rate(counters_.lends, then.lends),
          .releases = rate(counters_.releases, then.releases),
          .commits = rate(counters_.commits, then.commits)};
}

void FleetLoop::ReviewSome(Batch& batch) {
  const absl::Duration passed = batch.now - last_tick_;
  if (passed >= absl::ZeroDuration() && passed < kTick) return;
  last_tick_ = batch.now;
  batch.effects.Merge(state_.fleet.Expire(batch.now));

  const auto& nodes = state_.fleet.nodes();
  const auto count = static_cast<double>(nodes.size());
  const double share = absl::FDivDuration(std::max(passed, absl::ZeroDuration()), kReviewPeriod);
  review_credit_ = std::min(count, review_credit_ + count * share);
  std::vector<NodeKey> due;
  for (auto it = nodes.upper_bound(reviewed_); review_credit_ >= 1; review_credit_ -= 1, ++it) {
    if (it == nodes.end()) it = nodes.begin();
    due.push_back(it->first);
  }
  for (const NodeKey& key : due) {
    reviewed_ = key;
    batch.effects.Merge(state_.fleet.Review(key, JitterOf(key), batch.now));
    AskCloudAgain(key, batch);
  }
}

// What the cloud granted in part only, or forgot.
void FleetLoop::AskCloudAgain(const NodeKey& key, Batch& batch) {
  const NodeRecord* record = state_.fleet.Find(key);
  if (record == nullptr || cloud_retries_.contains(key)) return;
  const bool waits = std::any_of(record->wanted.begin(), record->wanted.end(),
                                 [](const auto& e) { return !e.second.given.has_value(); });
  const bool on_its_way =
      std::any_of(record->configurations.begin(), record->configurations.end(),
                  [](const auto& e) { return e.second.state != LeaseState::kAttached; });
  if (!waits && !on_its_way) return;
  if (!cloud_.ForecastOf(key)) batch.effects.attach.insert(key);
}

void FleetLoop::Commit(Batch& batch) {
  const absl::Time begin = clock_.Now();
  const RecoveryState next = state_.recovery.Next();
  const auto stored = writer_.Commit({batch.effects, batch.raw, state_.fleet, next}, batch.now);
  const bool empty = stored.ok() && *stored == 0;
  if (metrics_ != nullptr && !empty) {
    metrics_->CountCommit(stored.status(), stored.value_or(0), clock_.Now() - begin);
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
  RememberMark(batch.now, /*at_once=*/false);
  CountEffects(batch.effects);
  CarryOut(batch);
}

void FleetLoop::CountEffects(const Effects& effects) const {
  if (metrics_ == nullptr) return;
  for (const absl::Duration took : effects.attach_times) metrics_->CountAttached(took);
}

void FleetLoop::CarryOut(Batch& batch) {
  if (state_.recovery.open() && !cloud_begun_) BeginCloud();
  TellNodesGone(batch.effects);  // Before one of them that is back after all is welcomed.
  for (auto& [session, answer] : batch.answers) agents_.Send(session, std::move(answer));
  if (!state_.recovery.open()) {
    // Nobody is told, asked for, or given anything from a store that may be old.
    batch.effects.resend.clear();
    batch.effects.desired.clear();
    batch.effects.reclaim.clear();
    batch.effects.end_lendings.clear();
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
    const NodeRecord* record = state_.fleet.Find(key);
    if (session == sessions_.end() || record == nullptr) continue;
    DesiredState next = NextDesired(state_.fleet, *record, batch.now, session->second);
    if (witness_ != nullptr) {
      if (token_.empty()) {
        token_ = witness_->Sign(state_.recovery.Mark(nodes_with_addresses_));
      }
      next.store_token = token_;
    }
    agents_.Send(session->second.id, std::move(next));
  }
  for (auto& [key, ranges] : batch.effects.reclaim) AskToReclaim(key, std::move(ranges));
  for (auto& [key, ends] : batch.effects.end_lendings) {
    const auto session = sessions_.find(key);
    if (session == sessions_.end()) continue;
    for (EndLending& end : ends) agents_.Send(session->second.id, std::move(end));
  }
  for (const NodeKey& key : batch.answered) {
    const auto session = sessions_.find(key);
    if (session != sessions_.end() && session->second.reclaim_pending == 0) {
      AskForNext(key, session->second);
    }
  }
  for (const NodeKey& key : batch.effects.attach) {
    const NodeRecord* record = state_.fleet.Find(key);
    if (record == nullptr || !state_.fleet.HasItsInstance(*record)) continue;
    NicRequest request = RequestFor(*record);
    request.mended = batch.effects.retry.contains(key);
    if (request.mended) cloud_retries_.erase(key);
    cloud_.Request(std::move(request));
  }
  SendOutlooks(batch.now);
  SpreadPolicy();
  TellObjects();
  for (const SessionId session : batch.read_next) agents_.ReadNext(session);
  LogFindings(batch.effects.findings);
  TellRecovery();
  SetProblem("releases", state_.fleet.breaker().frozen()
                             ? state_.fleet.breaker().state().freeze->reason
                             : std::string());
  for (const auto& done : batch.done) done(absl::OkStatus());
  Answer(batch);
}

void FleetLoop::Answer(Batch& batch) {
  const FleetView view = View(batch.now);
  for (const auto& query : batch.queries) query(view);
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
  const NodeRecord* record = state_.fleet.Find(node);
  std::vector<ip::Prefix> ranges = std::exchange(session.reclaim_next, {});
  std::erase_if(ranges, [&](const ip::Prefix& range) {
    const Configuration* held = record == nullptr ? nullptr : record->Holding(range.base());
    return held == nullptr || held->range != range || held->state != LeaseState::kAttached;
  });
  if (ranges.empty()) return;
  session.reclaim_pending = ++session.last_request;
  if (metrics_ != nullptr) metrics_->CountReclaim(ReclaimOutcome::kAsked, ranges.size());
  agents_.Send(session.id, ReclaimRequest{session.reclaim_pending, std::move(ranges)});
}

// --- When nothing can be stored. ---

// Memory is ahead of the store now, so it goes back to what the store says, and every agent whose
// message was not answered begins again. Until a commit goes through, agents wait and operators can
// only look.
void FleetLoop::Fail(const absl::Status& why, Batch& batch) {
  if (writable_) log_.Error("store_commit_failed", {{"error", why}});
  SetWritable(false);
  // A store that fails soon after a probe went through is not asked for 7,500 sessions a second.
  const bool again = batch.now - last_recovery_ < kLongestProbePeriod;
  probe_period_ = again ? std::min(2 * probe_period_, kLongestProbePeriod) : kProbePeriod;
  next_probe_ = batch.now + probe_period_;
  SetProblem("store", fmt::format("nothing can be stored: {}", base::MessageOf(why)));
  const absl::Status refused = absl::UnavailableError(
      fmt::format("nothing can be stored now, and nothing was changed: {}", base::MessageOf(why)));
  for (const auto& done : batch.done) done(refused);
  std::set<SessionId> unanswered(batch.read_next.begin(), batch.read_next.end());
  for (const auto& [session, answer] : batch.answers) unanswered.insert(session);
  for (const SessionId session : unanswered) {
    const auto node = nodes_by_session_.find(session);
    if (node == nodes_by_session_.end()) continue;
    EndSession(session, NodeKey(node->second), refused);
    agents_.Close(session, refused);
  }
  // What the cloud was to be asked, or has answered, is asked again once that can be stored.
  for (const NodeKey& key : batch.effects.attach) cloud_retries_[key] = batch.now;
  for (const NodeKey& key : batch.effects.changed) cloud_retries_[key] = batch.now;
  Reload(batch.now);
  Answer(batch);
}

void FleetLoop::Reload(absl::Time now) {
  auto loaded = LoadState(store_, settings_, now);
  reload_due_ = !loaded.ok();
  if (!loaded.ok()) {
    log_.Error("store_reload_failed", {{"error", loaded.status()}});
    SetProblem("memory", fmt::format("what is shown may never have been stored: {}",
                                     base::MessageOf(loaded.status())));
    return;
  }
  SetProblem("memory", "");
  loaded->state.fleet.TakeDemands(state_.fleet);   // No agent of those says it again.
  Recovery recovery = std::move(state_.recovery);  // How it stands is in no store.
  recovery.OnReload(loaded->state.recovery.state());
  state_ = std::move(loaded->state);
  state_.recovery = std::move(recovery);
  token_.clear();
  if (!state_.recovery.open()) {
    state_.fleet.Hold();
    for (auto& [key, session] : sessions_) {
      agents_.Send(session.id, InventoryRequest{++session.last_request});
    }
  }
  writer_.Reset(std::move(loaded->revisions), loaded->newest_chunk);
}

void FleetLoop::TryToRecover(Batch& batch) {
  if (batch.now < next_probe_) return;
  next_probe_ = batch.now + probe_period_;
  if (const absl::Status probed = writer_.Probe(); !probed.ok()) {
    SetProblem("store", fmt::format("nothing can be stored: {}", base::MessageOf(probed)));
    return;
  }
  if (reload_due_) Reload(batch.now);
  if (reload_due_) return;
  SetWritable(true);
  last_recovery_ = batch.now;
  SetProblem("store", "");
  // Their pods cannot wait for the next review.
  for (const NodeKey& key : state_.fleet.NodesInDemand()) {
    batch.effects.Merge(state_.fleet.Plan(key, batch.now));
  }
}

void FleetLoop::SetWritable(bool writable) {
  if (writable_ == writable) return;
  writable_ = writable;
  if (writable_sink_) writable_sink_(writable);
}

// --- Policy. ---

void FleetLoop::SpreadPolicy() {
  for (size_t i = 0; i < kPolicyPerTurn && !policy_waiting_.empty(); ++i) {
    const NodeKey key = *policy_waiting_.begin();
    policy_waiting_.erase(policy_waiting_.begin());
    if (const auto session = sessions_.find(key); session != sessions_.end()) {
      SendPolicy(key, session->second);
    }
  }
}

void FleetLoop::TellObjects() {
  if (!objects_sink_ || objects_told_ == state_.objects.version()) return;
  objects_told_ = state_.objects.version();
  objects_sink_(state_.objects);
}

// A machine that has another key now holds nothing under the one before.
void FleetLoop::TellNodesGone(const Effects& effects) const {
  if (!node_gone_sink_) return;
  for (const Finding& finding : effects.findings) {
    if (finding.kind == Finding::Kind::kGone) node_gone_sink_(finding.node);
  }
  for (const auto& [former, present] : effects.renamed) node_gone_sink_(former);
}

void FleetLoop::SetProblem(const std::string& topic, const std::string& text) {
  const auto it = problems_by_topic_.find(topic);
  if (text.empty()) {
    if (it == problems_by_topic_.end()) return;
    problems_by_topic_.erase(it);
    log_.Info("problem_over", {{"topic", topic}});
  } else if (it != problems_by_topic_.end() && it->second == text) {
    return;
  } else {
    problems_by_topic_[topic] = text;
  }
  problems_.clear();
  for (const auto& [unused, problem] : problems_by_topic_) problems_.push_back(problem);
}

FleetView FleetLoop::View(absl::Time now) const {
  return {state_, state_.fleet, sessions_, problems_, cloud_retries_, cloud_, Rates(now), now};
}

const NodeKey* FleetLoop::NodeOf(SessionId session) const {
  const auto it = nodes_by_session_.find(session);
  return it == nodes_by_session_.end() ? nullptr : &it->second;
}

}  // namespace spoke::ipam
