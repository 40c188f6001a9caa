// The conversation of an agent with its server: when to call, what to say and in which order, and
// when to give a stream up. Pure: no sockets, clock, locks, logs or metrics. The edge
// (server_session.h) says what has happened, and carries out what is answered.
//
// There is one stream at a time. Its first message is the hello, which says all that is so; what is
// said between two streams is dropped, since the next hello says it. Times are of one clock that
// does not go back; random numbers are uniform in [0, 1).
#pragma once

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

namespace spoke::netagent {

// --- The phases of a stream. ---

enum class SessionPhase {
  kIdle,        // There is no stream; the next attempt has its time.
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

  struct Connect {};  // Open a stream and ask for a greeting; always answered by OnDisconnected().
  struct Send {       // Write the message; the next one comes after OnSent().
    node_api::AgentMessage message;
  };
  struct EndWrites {};  // Tell the server that nothing more comes.
  struct Cut {};        // Break the stream.
  struct Apply {        // Have the agent act upon the request.
    node_api::ServerMessage request;
  };
  struct Connected {  // The server has taken the hello.
    node_api::Welcome welcome;
  };
  struct Refused {  // Say in the log that a message was not acted upon.
    absl::Status why;
  };
  struct Disconnected {
    absl::Status why;  // kFailedPrecondition: CheckSkew()'s text; kAborted: we have begun anew.
    bool is_skew = false;
    bool is_news = false;  // Whether to log it: it was not the outcome of the attempt before.
  };
  using Effect =
      std::variant<Connect, Send, EndWrites, Cut, Apply, Connected, Refused, Disconnected>;
  using Effects = std::vector<Effect>;  // To be carried out in this order.

  // --- Events. ---

  // The time that a report waits for what else comes up: pods come and go in bursts, and each
  // message costs the node, and the server a commit, whatever is in it.
  static constexpr absl::Duration kReportPause = absl::Milliseconds(10);

  struct Settings {
    std::string agent_version;
    // The time that a server may take to end a stream that we have ended, before we cut it.
    absl::Duration farewell = absl::Seconds(2);
    // The time that a stream may take to be opened, greeted and welcomed, or to take what waits at
    // its end. It is generous: all agents of a cluster may have come to one server at once. It is
    // kept as far as Tick() is called: an edge that is writing to a server which does not read is
    // ended by the connection's keepalive, or by an outbox that is full.
    absl::Duration patience = absl::Minutes(2);
    ReconnectSettings reconnect;
  };
  explicit SessionMachine(const Settings& settings)
      : settings_(settings), reconnect_(settings.reconnect) {}

  // Begins: the first attempt has its time from now on.
  void Start(absl::Time now, double random) { wake_ = now + reconnect_.BeforeFirst(random); }

  // Does what is due. Call at NextWake(), or at any time.
  Effects Tick(absl::Time now);
  absl::Time NextWake() const;

  // Takes the agent's answer to Connect. Does nothing if that stream is over, or was greeted.
  Effects Begin(Greeting greeting, absl::Time now);
  // Says something of what Outbox::Add() takes to the server. A stream whose server takes too
  // little is cut, since the next hello says everything.
  template <typename Message>
  Effects Say(const Message& message, absl::Time now) {
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
  // Returns the next message, or the end, if it is the time for it.
  Effects Advance(absl::Time now);
  Effects CutFor(absl::Status why);
  Effects OnWelcome(node_api::Welcome welcome);
  void JudgeVersion(std::string_view server_version);

  const Settings settings_;
  Reconnect reconnect_;
  SessionPhase phase_ = SessionPhase::kIdle;
  absl::Time wake_ = absl::InfiniteFuture();  // The next attempt, or the cut of the stream.
  absl::Status skew_;                         // Not OK: the present server does not fit.
  bool unreachable_said_ = false;
  std::string skew_said_;

  // --- The state of the present stream. ---
  absl::Time began_;
  bool welcomed_ = false;
  bool in_flight_ = false;
  bool writes_ended_ = false;
  absl::Status gave_up_;                  // Why we have ended it; OK: we have not.
  std::optional<node_api::Hello> hello_;  // Goes before the outbox.
  Outbox outbox_;
  std::optional<absl::Time> pause_end_;  // When the waiting report goes.
};

}  // namespace spoke::netagent
