// The conversation of an agent with its server: which of several to call and when, what to say and
// in which order, and when to give a stream up. Pure: no sockets, clock, locks, logs or metrics.
// The edge (server_session.h) says what has happened, and carries out what is answered.
//
// Servers are dialled (server_search.h) until one answers: of several, only the leader takes
// connections of agents. There is one stream at a time, on the connection that came of a dial. Its
// first message is the hello, which says all that is so; what is said between two streams is
// dropped, since the next hello says it.
//
// A leader that hangs, or that no packet reaches any more, ends no stream. So an agent that waits
// for an acknowledgement for too long dials the other servers while it keeps its stream. It moves
// once one of them takes the connection, for the fence of the store lets only one of them lead.
//
// Times are of one clock that does not go back; random numbers are uniform in [0, 1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "netagent/session/greeting.h"
#include "netagent/session/outbox.h"
#include "netagent/session/reconnect.h"
#include "netagent/session/server_search.h"

namespace spoke::netagent {

// --- The phases of a stream. ---

enum class SessionPhase {
  kIdle,        // There is no stream: servers are dialled, or the next round has its time.
  kConnecting,  // A stream is being opened; nothing is said before Begin().
  kGreeted,     // The hello was said, or is about to be.
  kEnding,      // What waits is still said, and then the stream ends.
  kCut,         // The stream is over, and its end has yet to be heard.
};
enum class SessionStep { kConnect, kGreet, kEnd, kCut, kDisconnect };

// The next phase; nullopt: the phase has no such step, and what asked for it comes too late.
constexpr std::optional<SessionPhase> Next(SessionPhase phase, SessionStep step) {
  if (phase != SessionPhase::kIdle && step == SessionStep::kDisconnect) return SessionPhase::kIdle;
  if (phase != SessionPhase::kIdle && phase != SessionPhase::kCut && step == SessionStep::kCut) {
    return SessionPhase::kCut;
  }
  switch (phase) {
    case SessionPhase::kIdle:
      if (step == SessionStep::kConnect) return SessionPhase::kConnecting;
      break;
    case SessionPhase::kConnecting:
      if (step == SessionStep::kGreet) return SessionPhase::kGreeted;
      break;
    case SessionPhase::kGreeted:
      if (step == SessionStep::kEnd) return SessionPhase::kEnding;
      break;
    case SessionPhase::kEnding:
    case SessionPhase::kCut:
      break;
  }
  return std::nullopt;
}
static_assert(!Next(SessionPhase::kGreeted, SessionStep::kGreet), "one hello a stream");
static_assert(!Next(SessionPhase::kGreeted, SessionStep::kConnect), "one stream at a time");
static_assert(!Next(SessionPhase::kCut, SessionStep::kGreet), "a stream that is over stays so");
static_assert(!Next(SessionPhase::kIdle, SessionStep::kDisconnect), "one end a stream");

// Not thread-safe. Each event has the time at which it happened.
class SessionMachine {
 public:
  // --- What the server says. ---

  // A message that cannot be acted upon.
  struct Unreadable {
    absl::Status why;
    bool is_desired = false;  // A change of what this node has: the later ones build upon it.
  };
  using FromServer = std::variant<node_api::ServerMessage, Unreadable>;

  // --- What the edge is to do. ---

  struct Dial {  // Open a connection; answered by OnDialled() unless dials are stopped before.
    size_t server = 0;
  };
  struct StopDials {};  // Give up all dials, and connections that came of them.
  struct Connect {      // Open a stream on the connection that a dial has opened, and ask for a
    size_t server = 0;  // greeting; always answered by OnDisconnected().
  };
  struct Send {  // Write the message; the next one comes after OnSent().
    node_api::AgentMessage message;
  };
  struct EndWrites {};  // Tell the server that nothing more comes.
  struct Cut {};        // Break the stream.
  struct Apply {        // Have the agent act upon the request.
    node_api::ServerMessage request;
  };
  struct Connected {  // The server has taken the hello.
    size_t server = 0;
    node_api::Welcome welcome;
  };
  struct Refused {  // Say in the log that a message was not acted upon.
    absl::Status why;
  };
  struct Disconnected {
    absl::Status why;  // kFailedPrecondition: CheckSkew()'s text; kAborted: we have begun anew.
    bool is_skew = false;
    bool is_news = false;  // Whether to log it: it was not the outcome of the attempt before.
    std::optional<size_t> server =
        std::nullopt;  // The server; nullopt: no server could be dialled.
  };
  using Effect = std::variant<Dial, StopDials, Connect, Send, EndWrites, Cut, Apply, Connected,
                              Refused, Disconnected>;
  using Effects = std::vector<Effect>;  // To be carried out in this order.

  // --- Events. ---

  // The time that a report waits for what else comes up: pods come and go in bursts, and each
  // message costs the node, and the server a commit, whatever is in it.
  static constexpr absl::Duration kReportPause = absl::Milliseconds(10);

  // The time that a server may take for a welcome or an acknowledgement, or a message to be written
  // that no acknowledgement follows, before the others are dialled as well. It doubles with each
  // move that has brought no acknowledgement: all servers may be slow, and moving makes them
  // slower.
  static constexpr absl::Duration kSlow = absl::Seconds(1);
  // The same where there is one name. Behind it may be several servers, so it is dialled again; but
  // if there is one, that one is being burdened.
  static constexpr absl::Duration kSlowAlone = absl::Seconds(2);
  static constexpr int kMostDoublings = 6;
  // The time after the loss of a session, or the last acknowledgement, in which an agent that has
  // something to say tries hard, since the next leader takes over within seconds.
  static constexpr absl::Duration kHurry = absl::Seconds(10);
  // The time for which a server that took the connection and no hello is not dialled while there
  // are others: it answers fast, and may be a leader that is cut off from the store.
  static constexpr absl::Duration kTurnedAway = absl::Seconds(5);
  static constexpr base::Backoff kHurryPauses = {.initial = absl::Milliseconds(100),
                                                 .max = absl::Milliseconds(300)};

  struct Settings {
    std::vector<std::string> servers;  // Their names, from 1 of them; numbered from 0.
    std::string agent_version;
    // The time that a server may take to end a stream that we have ended, before we cut it.
    absl::Duration farewell = absl::Seconds(2);
    // The time that a stream may take to be opened, greeted and welcomed, or to take what waits at
    // its end. It is generous: all agents of a cluster may have come to one server at once.
    absl::Duration patience = absl::Minutes(2);
    ReconnectSettings reconnect;
  };
  explicit SessionMachine(const Settings& settings)
      : settings_(settings),
        reconnect_(settings.reconnect),
        search_(settings.servers.size()),
        dial_failures_(settings.servers.size()) {}

  // Begins: the first attempt has its time from now on. `server`, chosen at random, is the first to
  // be dialled, so that a dead machine at the head of everybody's list keeps few waiting.
  void Start(size_t server, absl::Time now, double random);

  // Does what is due. Call at NextWake(), or at any time.
  Effects Tick(absl::Time now);
  absl::Time NextWake() const;

  // Takes what came of a Dial: OK says that the connection can be used now. Does nothing for a dial
  // that was given up.
  Effects OnDialled(size_t server, const absl::Status& outcome, absl::Time now, double random);

  // Whether the agent's answer to Connect is awaited.
  bool awaits_greeting() const { return phase_ == SessionPhase::kConnecting; }
  // Takes the agent's answer to Connect. Does nothing if that stream is over, or was greeted.
  Effects Begin(Greeting greeting, absl::Time now);
  // Says something of what Outbox::Add() takes to the server. A stream whose server takes too
  // little is cut, since the next hello says everything.
  template <typename Message>
  Effects Say(const Message& message, absl::Time now) {
    if (phase_ == SessionPhase::kIdle && IsUrgent(message)) Hasten(now);
    if (phase_ != SessionPhase::kGreeted) return {};
    if constexpr (std::is_void_v<decltype(outbox_.Add(message))>) {
      outbox_.Add(message);
    } else if (!outbox_.Add(message)) {
      return CutFor(absl::UnavailableError("the server takes less than there is to say"));
    }
    return Advance(now);
  }
  // Says what waits, ends the stream and calls again. Does nothing when no stream is greeted.
  Effects BeginAnew(std::string_view why, absl::Time now);

  // Notes that the message of the last Send is written.
  Effects OnSent(absl::Time now);
  // Takes a message; call it in the order in which the server sent them. A server whose version
  // does not fit, or whose stream is over, is not listened to.
  Effects OnReceived(FromServer message, absl::Time now);
  // Notes that the stream, or the attempt at one, has ended with `why`. `refused_by`: the version
  // of a server that refuses ours, if that was said.
  Effects OnDisconnected(const absl::Status& why, std::optional<std::string> refused_by,
                         absl::Time now, double random);

 private:
  bool Enter(SessionStep step);
  // Whether a message says what somebody waits for, so that it cannot wait for the usual pause.
  static bool IsUrgent(const node_api::AssignmentReport& report) {
    return !report.in_use.empty() || !report.released.empty();
  }
  static bool IsUrgent(const node_api::Demand& demand) { return !demand.waiting.empty(); }
  template <typename Other>
  static bool IsUrgent(const Other&) {
    return false;
  }
  void Hasten(absl::Time now);
  bool IsInHurry(absl::Time now) const;

  // Dials what is due, and ends the round when it is over; opens the stream if a server was found
  // before the last one ended.
  Effects Search(absl::Time now);
  Disconnected EndIdleRound(absl::Time now);
  absl::Status WhyNobodyAnswers() const;
  Effects OpenStream(size_t server, absl::Time now);
  // Since when the server owes an answer, or has not taken what is being written.
  absl::Time OwedSince() const;
  // When the others are dialled beside the present stream; InfiniteFuture: never, as it stands.
  absl::Time SlowAt() const;
  // Returns the effect of giving up all dials; nothing if there are none.
  Effects StopSearch();

  // Returns the next message, or the end, if it is the time for it.
  Effects Advance(absl::Time now);
  Effects CutFor(absl::Status why);
  Effects OnWelcome(node_api::Welcome welcome, absl::Time now);
  Effects OnReportAck(const node_api::ReportAck& ack, absl::Time now);
  void PlanNextAttempt(absl::Time now);
  void JudgeVersion(std::string_view server_version);

  const Settings settings_;
  Reconnect reconnect_;
  ServerSearch search_;
  SessionPhase phase_ = SessionPhase::kIdle;
  absl::Time wake_ = absl::InfiniteFuture();  // The next round, or the cut of the stream.
  absl::Status skew_;                         // Not OK: the present server does not fit.
  bool unreachable_said_ = false;
  std::string skew_said_;
  // The last random number that was drawn. It serves where no event brings one: what matters is
  // that agents differ.
  double random_ = 0;

  // --- The choice of a server. ---
  size_t server_ = 0;            // The server of the present stream, or of the last.
  std::optional<size_t> found_;  // The next stream's: it has answered while this one did not.
  std::optional<size_t> turned_away_by_;  // The last that took no hello; left out until then:
  absl::Time turned_away_until_ = absl::InfinitePast();
  std::vector<absl::Status> dial_failures_;  // Why the latest dial of each failed; OK: it did not.
  int moves_ = 0;                            // The moves since the last acknowledgement.
  bool urgent_ = false;  // Without a stream: there is something that a server should hear.
  absl::Time hurry_since_ = absl::InfinitePast();
  int hurried_ = 0;  // The attempts since then, or since the last acknowledgement.

  // --- The state of the present stream. ---
  absl::Time began_;
  bool welcomed_ = false;
  bool in_flight_ = false;
  absl::Time in_flight_since_ = absl::InfiniteFuture();  // The same, in time.
  bool writes_ended_ = false;
  absl::Time waits_since_ = absl::InfiniteFuture();  // Since when an answer of the server is due.
  absl::Time round_at_ = absl::InfinitePast();       // The next round beside the stream.
  absl::Status gave_up_;                             // Why we have ended it; OK: we have not.
  std::optional<node_api::Hello> hello_;             // Goes before the outbox.
  Outbox outbox_;
  std::optional<absl::Time> pause_end_;  // When the waiting report goes.
};

}  // namespace spoke::netagent
