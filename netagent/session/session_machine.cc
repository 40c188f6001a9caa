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

void SessionMachine::Start(size_t server, absl::Time now, double random) {
  server_ = server;
  random_ = random;
  wake_ = now + reconnect_.BeforeFirst(random);
}

SessionMachine::Effects SessionMachine::Tick(absl::Time now) {
  if (phase_ != SessionPhase::kIdle && now >= wake_) {
    return CutFor(absl::DeadlineExceededError("the server does not answer the hello"));
  }
  Effects effects = Search(now);
  for (Effect& effect : Advance(now)) effects.push_back(std::move(effect));
  return effects;
}

absl::Time SessionMachine::NextWake() const {
  absl::Time next = std::min({wake_, pause_end_.value_or(absl::InfiniteFuture()),  //
                              search_.NextWake()});
  if (!search_.in_round()) next = std::min(next, std::max(SlowAt(), round_at_));
  return next;
}

// --- The choice of a server. ---

SessionMachine::Effects SessionMachine::Search(absl::Time now) {
  const bool idle = phase_ == SessionPhase::kIdle;
  if (!search_.in_round()) {
    if (now < (idle ? wake_ : std::max(SlowAt(), round_at_))) return {};
    if (found_) return OpenStream(*std::exchange(found_, std::nullopt), now);
    if (idle) {
      // The same server first: the connection may have been all that broke, or the program may
      // have been started again. If not, it refuses at once. One that went silent is not in
      // `server_` any more.
      wake_ = absl::InfiniteFuture();
      search_.BeginRound(server_, now < turned_away_until_ ? turned_away_by_ : std::nullopt, now);
    } else {
      const size_t count = search_.servers();
      search_.BeginRound((server_ + 1) % count,
                         count == 1 ? std::nullopt : std::optional<size_t>(server_), now);
    }
  }
  Effects effects;
  while (const auto server = search_.Next(now)) {
    dial_failures_[*server] = absl::OkStatus();
    effects.emplace_back(Dial{*server});
  }
  if (!search_.EndRound(now)) return effects;
  if (idle) {
    effects.emplace_back(EndIdleRound(now));
    return effects;
  }
  const bool hurry = now - OwedSince() < kHurry;
  round_at_ = now + (hurry ? kHurryPauses : settings_.reconnect.backoff).Delay(hurried_++, random_);
  return effects;
}

SessionMachine::Disconnected SessionMachine::EndIdleRound(absl::Time now) {
  wake_ = now + (IsInHurry(now) ? kHurryPauses.Delay(hurried_++, random_)
                                : reconnect_.After({}, random_));
  Disconnected end{.why = WhyNobodyAnswers(), .is_news = !unreachable_said_};
  unreachable_said_ = true;
  return end;
}

absl::Status SessionMachine::WhyNobodyAnswers() const {
  absl::Status why = absl::DeadlineExceededError("no answer yet");
  std::string text;
  for (size_t i = 0; i < dial_failures_.size(); ++i) {
    const absl::Status& failure = dial_failures_[i];
    if (!failure.ok()) why = failure;
    if (!text.empty()) text += "; ";
    text += settings_.servers[i] + ": ";
    text += failure.ok() ? "no answer yet" : std::string(failure.message());
  }
  return dial_failures_.size() == 1 ? why : absl::Status(why.code(), text);
}

SessionMachine::Effects SessionMachine::OnDialled(size_t server, const absl::Status& outcome,
                                                  absl::Time now, double random) {
  if (!search_.IsDialled(server)) return {};
  random_ = random;
  if (!outcome.ok()) {
    dial_failures_[server] = outcome;
    search_.OnFailed(server, now, random);
    return Tick(now);
  }
  if (phase_ == SessionPhase::kIdle) return OpenStream(server, now);
  found_ = server;
  ++moves_;
  return CutFor(absl::UnavailableError("it does not answer in time, and " +
                                       settings_.servers[server] + " takes connections"));
}

SessionMachine::Effects SessionMachine::OpenStream(size_t server, absl::Time now) {
  if (!Enter(SessionStep::kConnect)) return {};
  server_ = server;
  wake_ = now + settings_.patience;
  began_ = now;
  skew_ = absl::OkStatus();
  welcomed_ = in_flight_ = writes_ended_ = false;
  waits_since_ = in_flight_since_ = absl::InfiniteFuture();
  round_at_ = absl::InfinitePast();
  gave_up_ = absl::OkStatus();
  hello_.reset();
  outbox_ = Outbox();
  pause_end_.reset();
  Effects effects = StopSearch();
  effects.emplace_back(Connect{server});
  return effects;
}

absl::Time SessionMachine::SlowAt() const {
  const bool alone = search_.servers() == 1;
  // A server that is alone and takes long for a welcome is one that all agents have come to.
  if (phase_ != SessionPhase::kGreeted || (alone && !welcomed_)) return absl::InfiniteFuture();
  return OwedSince() + (alone ? kSlowAlone : kSlow) * (1 << std::min(moves_, kMostDoublings));
}

absl::Time SessionMachine::OwedSince() const { return std::min(waits_since_, in_flight_since_); }

SessionMachine::Effects SessionMachine::StopSearch() {
  if (!search_.Stop()) return {};
  return {StopDials{}};
}

void SessionMachine::Hasten(absl::Time now) {
  if (std::exchange(urgent_, true) || !IsInHurry(now) || search_.in_round()) return;
  wake_ = std::min(wake_, now + ServerSearch::kStep * random_);
}

bool SessionMachine::IsInHurry(absl::Time now) const {
  return urgent_ && now - hurry_since_ < kHurry;
}

// --- The stream. ---

SessionMachine::Effects SessionMachine::Begin(Greeting greeting, absl::Time now) {
  if (!Enter(SessionStep::kGreet)) return {};
  for (const node_api::ConflictReport& conflict : greeting.conflicts) outbox_.Add(conflict);
  if (!greeting.demand.waiting.empty()) outbox_.Add(greeting.demand);
  hello_ = std::move(greeting.hello);
  waits_since_ = now;
  return Advance(now);
}

SessionMachine::Effects SessionMachine::BeginAnew(std::string_view why, absl::Time now) {
  if (!Enter(SessionStep::kEnd)) return {};
  gave_up_ = absl::AbortedError(std::string(why));
  wake_ = now + settings_.patience;
  Effects effects = StopSearch();
  for (Effect& effect : Advance(now)) effects.push_back(std::move(effect));
  return effects;
}

SessionMachine::Effects SessionMachine::OnSent(absl::Time now) {
  in_flight_ = false;
  in_flight_since_ = absl::InfiniteFuture();
  // It was only slow, and there is nothing else that it owes.
  Effects effects;
  if (welcomed_ && waits_since_ == absl::InfiniteFuture()) effects = StopSearch();
  for (Effect& effect : Advance(now)) effects.push_back(std::move(effect));
  return effects;
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
    in_flight_since_ = now;
    if (std::holds_alternative<node_api::AssignmentReport>(*next)) {
      waits_since_ = std::min(waits_since_, now);
    }
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
  Effects effects = StopSearch();
  effects.emplace_back(Cut{});
  return effects;
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
  if (auto* welcome = std::get_if<node_api::Welcome>(&said)) {
    return OnWelcome(std::move(*welcome), now);
  }
  if (const auto* ack = std::get_if<node_api::ReportAck>(&said)) return OnReportAck(*ack, now);
  return {Apply{std::move(said)}};
}

SessionMachine::Effects SessionMachine::OnReportAck(const node_api::ReportAck& ack,
                                                    absl::Time now) {
  outbox_.OnReportAck(ack.sequence);
  Effects effects;
  if (welcomed_ && !outbox_.awaits_ack()) {
    waits_since_ = absl::InfiniteFuture();
    moves_ = hurried_ = 0;
    effects = StopSearch();
  }
  for (Effect& effect : Advance(now)) effects.push_back(std::move(effect));
  return effects;
}

SessionMachine::Effects SessionMachine::OnWelcome(node_api::Welcome welcome, absl::Time now) {
  if (welcomed_) return {};
  JudgeVersion(welcome.server_version);
  // The server judges versions by a rule of its own; ours says no.
  if (!skew_.ok()) return CutFor(skew_);
  welcomed_ = true;
  reconnect_.SetWithin(welcome.reconnect_within);
  unreachable_said_ = false;
  skew_said_.clear();
  urgent_ = false;
  turned_away_by_.reset();
  if (phase_ == SessionPhase::kGreeted) wake_ = absl::InfiniteFuture();
  waits_since_ = outbox_.awaits_ack() ? now : absl::InfiniteFuture();
  Effects effects = StopSearch();
  effects.emplace_back(Connected{server_, std::move(welcome)});
  return effects;
}

SessionMachine::Effects SessionMachine::OnDisconnected(const absl::Status& why,
                                                       std::optional<std::string> refused_by,
                                                       absl::Time now, double random) {
  if (!Enter(SessionStep::kDisconnect)) return {};
  random_ = random;
  if (refused_by) JudgeVersion(*refused_by);
  pause_end_.reset();
  Disconnected end{.why = why, .is_skew = !skew_.ok(), .server = server_};
  Effects effects = StopSearch();
  const bool turned_away = !welcomed_ && gave_up_.ok() && skew_.ok() && search_.servers() > 1;
  if (turned_away) {
    turned_away_by_ = server_;
    turned_away_until_ = now + kTurnedAway;
  }
  // The stream has ended while its server was silent, or before it had begun: the next one is
  // dialled first.
  if (turned_away || !effects.empty()) server_ = (server_ + 1) % search_.servers();
  PlanNextAttempt(now);
  if (end.is_skew) {
    end.why = skew_;
    end.is_news = skew_said_ != skew_.message();
    skew_said_ = std::string(skew_.message());
  } else {
    if (!gave_up_.ok()) end.why = gave_up_;
    if (end.why.ok()) end.why = absl::UnavailableError("the server closed the stream");
    end.is_news = absl::IsAborted(end.why) || !unreachable_said_;
    if (!absl::IsAborted(end.why)) unreachable_said_ = true;
  }
  effects.emplace_back(std::move(end));
  return effects;
}

void SessionMachine::PlanNextAttempt(absl::Time now) {
  const StreamEnd end{.welcomed = welcomed_, .lasted = now - began_, .skewed = !skew_.ok()};
  // A session that has held begins the hurry anew: one that breaks again and again must not.
  if (end.welcomed && end.lasted >= settings_.reconnect.settled) {
    hurry_since_ = now;
    hurried_ = 0;
  }
  if (end.skewed) hurry_since_ = absl::InfinitePast();
  urgent_ = urgent_ || outbox_.IsUrgent();
  absl::Duration pause = reconnect_.After(end, random_);
  if (found_) {
    pause = absl::ZeroDuration();
  } else if (IsInHurry(now)) {
    const int attempt = hurried_++;
    pause = attempt == 0 ? ServerSearch::kStep * random_ : kHurryPauses.Delay(attempt, random_);
  }
  wake_ = now + pause;
}

void SessionMachine::JudgeVersion(std::string_view server_version) {
  skew_ = base::CheckSkew({"spoke-netagent", settings_.agent_version},
                          {"spoke-ipam-server", server_version});
}

}  // namespace spoke::netagent
