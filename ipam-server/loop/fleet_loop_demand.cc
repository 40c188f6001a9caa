// What the agents of pods that wait are told meanwhile, and how ADDs went, for operators.
#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "ipam-server/loop/fleet_loop.h"

namespace spoke::ipam {
namespace {

// How often an agent is told anew how it stands, at most.
constexpr absl::Duration kForecastPeriod = absl::Seconds(1);
// A forecast that has moved by less than this is not worth a message.
constexpr absl::Duration kEtaTolerance = absl::Seconds(5);
// The forecasts of one turn; a cloud that is away keeps all nodes waiting at once.
constexpr size_t kForecastsPerTurn = 256;

}  // namespace

void FleetLoop::Handle(DemandEvent event, Batch& batch) {
  Session* session = TouchSession(event.session, batch);
  if (session == nullptr) return;
  const NodeKey& key = *NodeOf(event.session);
  batch.effects.Merge(OnDemand(state_.fleet, key, std::move(event.demand), batch.now));
  session->forecast_due = state_.fleet.demands.contains(key);
  if (session->forecast_due) PlanForecast(key, *session);
}

// The end of a session that no other of the node follows (yet).
void FleetLoop::EndSession(SessionId session, const NodeKey& node, const absl::Status& why) {
  sessions_.erase(node);
  nodes_by_session_.erase(session);
  ForgetFindings(node);
  state_.fleet.demands.erase(node);
  traces_.Drop(session, why);
  probes_.Drop(session, why);
  trials_.Drop(session, why);
  node_data_.Drop(session, why);
}

NicRequest FleetLoop::RequestFor(const NodeRecord& record) const {
  return NicOf(record, state_.fleet.demands.contains(record.key));
}

// --- Forecasts. ---

void FleetLoop::PlanForecast(const NodeKey& node, Session& session) {
  if (session.forecast_next != absl::InfiniteFuture()) return;
  session.forecast_next = session.forecast_looked + kForecastPeriod;
  forecasts_.emplace(session.forecast_next, node);
}

// Sends forecasts once what was decided is stored, so that nothing is said that may not happen.
void FleetLoop::SendForecasts(absl::Time now) {
  for (size_t i = 0; i < kForecastsPerTurn && !forecasts_.empty(); ++i) {
    const auto [due, node] = *forecasts_.begin();
    // It is far ahead only when the clock was put back.
    if (due > now && due - now <= kForecastPeriod) return;
    forecasts_.erase(forecasts_.begin());
    const auto session = sessions_.find(node);
    if (session == sessions_.end() || session->second.forecast_next != due) continue;  // Its last.
    session->second.forecast_next = absl::InfiniteFuture();
    SendForecast(node, session->second, now);
  }
}

void FleetLoop::SendForecast(const NodeKey& node, Session& session, absl::Time now) {
  const NodeRecord* record = state_.fleet.ledger.Find(node);
  if (record == nullptr || !state_.fleet.demands.contains(node)) return;
  node_api::Forecast forecast = ForecastOf(state_.fleet, *record, StandingOf(node), now);
  if (const auto store = problems_by_topic_.find("store"); store != problems_by_topic_.end()) {
    forecast = {.reason = fmt::format("the server can change nothing now: {}", store->second)};
  } else if (!state_.recovery.open()) {
    forecast = {.reason = fmt::format("the server gives nothing until its recovery is over: {}",
                                      state_.recovery.Reason())};
  }
  const bool tells = forecast.eta > absl::ZeroDuration();
  const absl::Time ends = tells ? now + forecast.eta : absl::InfinitePast();
  const bool moved = ends != session.forecast_ends &&
                     (!tells || absl::AbsDuration(ends - session.forecast_ends) > kEtaTolerance);
  if (std::exchange(session.forecast_due, false) || moved ||
      forecast.reason != session.forecast.reason) {
    session.forecast = forecast;
    session.forecast_ends = ends;
    edges_.agents.Send(session.id, std::move(forecast));
  }
  session.forecast_looked = now;
  PlanForecast(node, session);
}

CloudStanding FleetLoop::StandingOf(const NodeKey& node) const {
  CloudStanding standing;
  if (const auto forecast = edges_.cloud.ForecastOf(node)) {
    standing.eta = forecast->eta;
    standing.waits_for = forecast->waits_for;
  }
  const auto problem = problems_by_topic_.find(CloudTopicOf(node));
  const auto retry = cloud_retries_.find(node);
  if (problem != problems_by_topic_.end()) standing.failure = problem->second;
  if (retry != cloud_retries_.end()) standing.retry_at = retry->second;
  return standing;
}

// --- Traces. ---

void FleetLoop::PostAskTraces(const std::string& node, const std::string& pod_namespace,
                              const std::string& pod_name, TracesDone done) {
  edges_.mailbox.Post(
      OperatorEvent(AskTracesEvent{node, pod_namespace, pod_name, std::move(done)}));
}

void FleetLoop::Handle(AskTracesEvent event, Batch& batch) {
  const NodeRecord* record = FindByName(state_.fleet.ledger, event.node);
  if (record == nullptr) {
    return event.done(absl::NotFoundError(
        fmt::format("there is no node {}; see: spokectl node list", event.node)));
  }
  const auto session = sessions_.find(record->key);
  if (session == sessions_.end()) {
    return event.done(absl::FailedPreconditionError(fmt::format(
        "the agent of node {} is not connected, and only it knows the steps", event.node)));
  }
  if (traces_.full()) {
    return event.done(
        absl::ResourceExhaustedError("too many operators ask for traces at once; try again"));
  }
  const uint64_t id = ++session->second.last_request;
  traces_.Add(session->second.id, id, std::move(event.done), event.node, batch.now, kTracePatience);
  edges_.agents.Send(session->second.id,
                     node_api::AttachTracesRequest{id, event.pod_namespace, event.pod_name});
}

void FleetLoop::Handle(AttachTracesEvent event, Batch& batch) {
  if (TouchSession(event.session, batch) == nullptr) return;
  traces_.Take(event.session, std::move(event.traces));
}

// --- Probes. ---

void FleetLoop::PostAskProbe(const std::string& node, node_api::ProbeRequest request,
                             ProbeDone done) {
  edges_.mailbox.Post(OperatorEvent(AskProbeEvent{node, std::move(request), std::move(done)}));
}

absl::StatusOr<Session*> FleetLoop::SessionToAsk(const std::string& node) {
  const NodeRecord* record = FindByName(state_.fleet.ledger, node);
  if (record == nullptr) {
    return absl::NotFoundError(fmt::format("there is no node {}; see: spokectl node list", node));
  }
  const auto session = sessions_.find(record->key);
  if (session != sessions_.end()) return &session->second;
  return absl::FailedPreconditionError(fmt::format("the agent of node {} is not connected", node));
}

void FleetLoop::Handle(AskProbeEvent event, Batch& batch) {
  const auto session = SessionToAsk(event.node);
  if (!session.ok()) return event.done(session.status());
  if (probes_.full()) {
    return event.done(absl::ResourceExhaustedError("too many probes are under way; try again"));
  }
  event.request.id = ++(*session)->last_request;
  // The agent may have to wait for another one's probes.
  probes_.Add((*session)->id, event.request.id, std::move(event.done), event.node, batch.now,
              2 * event.request.timeout + kTracePatience);
  edges_.agents.Send((*session)->id, std::move(event.request));
}

void FleetLoop::Handle(ProbeAnswerEvent event, Batch& batch) {
  if (TouchSession(event.session, batch) == nullptr) return;
  probes_.Take(event.session, std::move(event.answer));
}

// --- What a policy would end. ---

void FleetLoop::PostAskTrial(const std::string& node, std::shared_ptr<const Bundle> policy,
                             TrialDone done) {
  edges_.mailbox.Post(OperatorEvent(AskTrialEvent{node, std::move(policy), std::move(done)}));
}

void FleetLoop::Handle(AskTrialEvent event, Batch& batch) {
  const auto session = SessionToAsk(event.node);
  if (!session.ok()) return event.done(session.status());
  if (trials_.full()) {
    return event.done(absl::ResourceExhaustedError("too many counts are under way; try again"));
  }
  const uint64_t id = ++(*session)->last_request;
  trials_.Add((*session)->id, id, std::move(event.done), event.node, batch.now, kTrialPatience);
  edges_.agents.Send((*session)->id, BundleTrial{id, std::move(event.policy)});
}

void FleetLoop::Handle(PolicyTrialEvent event, Batch& batch) {
  if (TouchSession(event.session, batch) == nullptr) return;
  trials_.Take(event.session, std::move(event.answer));
}

// --- What agents have kept of their past. ---

void FleetLoop::PostAskNodeData(const std::string& node, std::vector<std::string> parts,
                                NodeDataDone done) {
  edges_.mailbox.Post(OperatorEvent(AskNodeDataEvent{node, std::move(parts), std::move(done)}));
}

void FleetLoop::Handle(AskNodeDataEvent event, Batch& batch) {
  const auto session = SessionToAsk(event.node);
  if (!session.ok()) return event.done(session.status());
  if (node_data_.full()) {
    return event.done(
        absl::ResourceExhaustedError("too many operators ask agents at once; try again"));
  }
  const uint64_t id = ++(*session)->last_request;
  node_data_.Add((*session)->id, id, std::move(event.done), event.node, batch.now, kTracePatience);
  edges_.agents.Send((*session)->id, node_api::NodeDataRequest{id, std::move(event.parts)});
}

void FleetLoop::Handle(NodeDataEvent event, Batch& batch) {
  if (TouchSession(event.session, batch) == nullptr) return;
  node_data_.Take(event.session, std::move(event.answer));
}

}  // namespace spoke::ipam
