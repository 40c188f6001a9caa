#include "netagent/session/session_machine.h"

#include <algorithm>
#include <utility>

#include "lib/base/version_skew.h"

namespace spoke::netagent {

bool SessionMachine::Enter(SessionStep step) {
  const auto next = Next(phase_, step);
  if (next) phase_ = *next;
  return next.has_value();
}

SessionMachine::Effects SessionMachine::Tick(absl::Time now) {
  if (now < wake_) return Advance(now);
  if (!Enter(SessionStep::kConnect)) {
    return CutFor(absl::DeadlineExceededError("the server does not answer the hello"));
  }
  wake_ = now + settings_.patience;
  began_ = now;
  skew_ = absl::OkStatus();
  welcomed_ = in_flight_ = writes_ended_ = false;
  gave_up_ = absl::OkStatus();
  hello_.reset();
  outbox_ = Outbox();
  pause_end_.reset();
  return {Connect{}};
}

absl::Time SessionMachine::NextWake() const {
  return std::min(wake_, pause_end_.value_or(absl::InfiniteFuture()));
}

SessionMachine::Effects SessionMachine::Begin(Greeting greeting, absl::Time now) {
  if (!Enter(SessionStep::kGreet)) return {};
  for (const node_api::ConflictReport& conflict : greeting.conflicts) outbox_.Add(conflict);
  if (!greeting.demand.waiting.empty()) outbox_.Add(greeting.demand);
  hello_ = std::move(greeting.hello);
  return Advance(now);
}

SessionMachine::Effects SessionMachine::BeginAnew(std::string_view why, absl::Time now) {
  if (!Enter(SessionStep::kEnd)) return {};
  gave_up_ = absl::AbortedError(std::string(why));
  wake_ = now + settings_.patience;
  return Advance(now);
}

SessionMachine::Effects SessionMachine::OnSent(absl::Time now) {
  in_flight_ = false;
  return Advance(now);
}

SessionMachine::Effects SessionMachine::Advance(absl::Time now) {
  const bool ending = phase_ == SessionPhase::kEnding;
  if (in_flight_ || writes_ended_ || !(ending || phase_ == SessionPhase::kGreeted)) return {};
  if (!hello_ && !ending && outbox_.HasOnlyAReport()) {
    if (!pause_end_) pause_end_ = now + kReportPause;
    if (now < *pause_end_) return {};
  }
  pause_end_.reset();
  std::optional<node_api::AgentMessage> next;
  if (hello_) {
    next = *std::exchange(hello_, std::nullopt);
  } else {
    next = outbox_.Next();
  }
  if (next) {
    in_flight_ = true;
    return {Send{*std::move(next)}};
  }
  if (!ending) return {};
  writes_ended_ = true;
  wake_ = now + settings_.farewell;
  return {EndWrites{}};
}

SessionMachine::Effects SessionMachine::CutFor(absl::Status why) {
  if (!Enter(SessionStep::kCut)) return {};
  if (gave_up_.ok()) gave_up_ = std::move(why);
  wake_ = absl::InfiniteFuture();
  pause_end_.reset();
  return {Cut{}};
}

SessionMachine::Effects SessionMachine::OnReceived(FromServer message, absl::Time now) {
  if (phase_ != SessionPhase::kGreeted && phase_ != SessionPhase::kEnding) return {};
  if (const auto* unreadable = std::get_if<Unreadable>(&message)) {
    Effects effects = {Refused{unreadable->why}};
    // A change that was not taken would make those that follow mean something else.
    if (!unreadable->is_desired) return effects;
    for (Effect& effect : BeginAnew("a desired state that cannot be", now)) {
      effects.push_back(std::move(effect));
    }
    return effects;
  }
  auto& said = std::get<node_api::ServerMessage>(message);
  if (auto* welcome = std::get_if<node_api::Welcome>(&said)) return OnWelcome(std::move(*welcome));
  if (const auto* ack = std::get_if<node_api::ReportAck>(&said)) {
    outbox_.OnReportAck(ack->sequence);
    return Advance(now);
  }
  return {Apply{std::move(said)}};
}

SessionMachine::Effects SessionMachine::OnWelcome(node_api::Welcome welcome) {
  if (welcomed_) return {};
  JudgeVersion(welcome.server_version);
  // The server judges versions by a rule of its own; ours says no.
  if (!skew_.ok()) return CutFor(skew_);
  welcomed_ = true;
  unreachable_said_ = false;
  skew_said_.clear();
  if (phase_ == SessionPhase::kGreeted) wake_ = absl::InfiniteFuture();
  return {Connected{std::move(welcome)}};
}

SessionMachine::Effects SessionMachine::OnDisconnected(const absl::Status& why,
                                                       std::optional<std::string> refused_by,
                                                       absl::Time now, double random) {
  if (!Enter(SessionStep::kDisconnect)) return {};
  if (refused_by) JudgeVersion(*refused_by);
  pause_end_.reset();
  wake_ = now + reconnect_.After(
                    {.welcomed = welcomed_, .lasted = now - began_, .skewed = !skew_.ok()}, random);
  Disconnected end{.why = why, .is_skew = !skew_.ok()};
  if (end.is_skew) {
    end.why = skew_;
    end.is_news = skew_said_ != skew_.message();
    skew_said_ = std::string(skew_.message());
    return {std::move(end)};
  }
  if (!gave_up_.ok()) end.why = gave_up_;
  if (end.why.ok()) end.why = absl::UnavailableError("the server closed the stream");
  end.is_news = absl::IsAborted(end.why) || !unreachable_said_;
  if (!absl::IsAborted(end.why)) unreachable_said_ = true;
  return {std::move(end)};
}

void SessionMachine::JudgeVersion(std::string_view server_version) {
  skew_ = base::CheckSkew({"spoke-netagent", settings_.agent_version},
                          {"spoke-ipam-server", server_version});
}

}  // namespace spoke::netagent
