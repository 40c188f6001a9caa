// Plays the conversation (session_machine.h) against several servers that die, hang and take over,
// in simulated time.
#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/session/session_machine.h"

namespace spoke::netagent {
namespace {

enum class Mode {
  kLeads,
  kRefuses,    // It stands by, or its process has ended.
  kSilent,     // It hangs, or no packet reaches it.
  kTurnsAway,  // It takes connections and no hello, as a leader does that is cut off from the
               // store.
};

constexpr absl::Duration kDialDeadline = absl::Seconds(20);
constexpr absl::Duration kTrip = absl::Milliseconds(5);

// An agent and its servers.
class World {
 public:
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  World(std::vector<std::string> names, uint64_t seed)
      : modes(names.size(), Mode::kRefuses),
        random_(seed),
        machine_({.servers = std::move(names), .agent_version = "1.4.0"}) {
    machine_.Start(0, now, Random());
  }

  void Set(size_t server, Mode mode) {
    modes[server] = mode;
    if (stream_ != server || (mode != Mode::kRefuses && mode != Mode::kTurnsAway)) return;
    At(kTrip, [this] { Lose(absl::UnavailableError("reset")); });
  }
  // The message that was blocked is written.
  void TakeMessage() { CarryOut(machine_.OnSent(now)); }
  void ReportNow() {
    node_api::AssignmentReport report;
    report.released = {{ip::Address::V4(0x0A010005), ++reported_}};
    CarryOut(machine_.Say(report, now));
  }
  // What no acknowledgement answers.
  void AskNow() { CarryOut(machine_.Say(node_api::Demand{.waiting = {{"web", 1}}}, now)); }
  void RunUntil(absl::Time end) {
    RunWhile([] { return true; }, end);
  }
  // Returns how long it takes until a server has heard everything; Infinite: over a minute.
  absl::Duration UntilHeard() {
    const absl::Time begin = now;
    heard = false;
    RunWhile([this] { return !heard; }, begin + absl::Minutes(1));
    return heard ? now - begin : absl::InfiniteDuration();
  }

  absl::Time now = absl::FromUnixSeconds(1'000);
  std::vector<Mode> modes;
  absl::Duration ack_after = kTrip;
  absl::Duration handshake = 2 * kTrip;  // With a server that leads.
  bool blocked = false;                  // A silent server takes no message either.
  bool heard = false;                    // A welcome or an acknowledgement has come.
  int dials = 0;
  std::vector<size_t> connected;
  std::vector<absl::Status> ends;

 private:
  double Random() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  void At(absl::Duration after, std::function<void()> what) {
    events_.emplace(now + after, std::move(what));
  }
  void RunWhile(const std::function<bool()>& on, absl::Time end) {
    while (on()) {
      absl::Time next = machine_.NextWake();
      if (!events_.empty()) next = std::min(next, events_.begin()->first);
      if (next > end) {
        now = end;
        return;
      }
      now = std::max(now, next);
      if (!events_.empty() && events_.begin()->first <= now) {
        const auto what = std::move(events_.extract(events_.begin()).mapped());
        what();
      } else {
        CarryOut(machine_.Tick(now));
      }
    }
  }
  void Lose(const absl::Status& why) {
    ++stream_number_;
    stream_.reset();
    CarryOut(machine_.OnDisconnected(why, std::nullopt, now, Random()));
  }
  // Runs `what` after the time unless the stream is another by then.
  void InStream(absl::Duration after, std::function<void()> what) {
    At(after, [this, number = stream_number_, what = std::move(what)] {
      if (number == stream_number_) what();
    });
  }
  void Hear(node_api::ServerMessage message) {
    if (modes[*stream_] != Mode::kLeads) return;
    CarryOut(machine_.OnReceived(std::move(message), now));
  }
  void Dial(size_t server) {
    ++dials;
    const auto answer = [this, server](const absl::Status& outcome) {
      CarryOut(machine_.OnDialled(server, outcome, now, Random()));
    };
    if (modes[server] == Mode::kLeads || modes[server] == Mode::kTurnsAway) {
      At(modes[server] == Mode::kLeads ? handshake : 2 * kTrip,
         [answer] { answer(absl::OkStatus()); });
    } else if (modes[server] == Mode::kRefuses) {
      At(kTrip, [answer] { answer(absl::UnavailableError("refused")); });
    } else {
      At(kDialDeadline, [answer] { answer(absl::UnavailableError("timeout")); });
    }
  }
  void Send(const node_api::AgentMessage& message) {
    InStream(absl::ZeroDuration(), [this] {
      if (!blocked || modes[*stream_] != Mode::kSilent) CarryOut(machine_.OnSent(now));
    });
    if (std::holds_alternative<node_api::Hello>(message)) {
      InStream(kTrip, [this] { Hear(node_api::Welcome{.server_version = "1.4.0"}); });
    } else if (const auto* report = std::get_if<node_api::AssignmentReport>(&message)) {
      InStream(ack_after, [this, n = report->sequence] {
        heard = heard || modes[*stream_] == Mode::kLeads;
        Hear(node_api::ReportAck{n});
      });
    }
  }
  void CarryOut(const SessionMachine::Effects& effects) {
    for (const SessionMachine::Effect& effect : effects) {
      if (const auto* dial = std::get_if<SessionMachine::Dial>(&effect)) Dial(dial->server);
      if (const auto* connect = std::get_if<SessionMachine::Connect>(&effect)) {
        stream_ = connect->server;
        if (modes[*stream_] == Mode::kTurnsAway) {
          InStream(2 * kTrip, [this] { Lose(absl::UnavailableError("ask the next one")); });
        }
        InStream(kTrip, [this] { CarryOut(machine_.Begin({}, now)); });
      }
      if (const auto* send = std::get_if<SessionMachine::Send>(&effect)) Send(send->message);
      if (std::holds_alternative<SessionMachine::Cut>(effect)) {
        InStream(kTrip, [this] { Lose(absl::CancelledError("")); });
      }
      if (const auto* there = std::get_if<SessionMachine::Connected>(&effect)) {
        heard = true;
        connected.push_back(there->server);
      }
      if (const auto* end = std::get_if<SessionMachine::Disconnected>(&effect)) {
        ends.push_back(end->why);
      }
    }
  }

  std::mt19937_64 random_;
  SessionMachine machine_;
  std::multimap<absl::Time, std::function<void()>> events_;
  std::optional<size_t> stream_;
  uint64_t stream_number_ = 0;
  uint64_t reported_ = 0;
};

const std::vector<std::string> kThree = {"a:1", "b:1", "c:1"};

// Runs an agent for a minute while the first server leads.
void Settle(World& world) {
  world.Set(0, Mode::kLeads);
  world.RunUntil(world.now + absl::Minutes(1));
  EXPECT_EQ(world.connected, std::vector<size_t>{0});
}

class ServerFailoverTest : public testing::TestWithParam<uint64_t> {};

TEST_P(ServerFailoverTest, TheLeaderIsFoundWhereverItIsInTheList) {
  for (size_t leader = 0; leader < 3; ++leader) {
    World world(kThree, GetParam());
    world.Set(leader, Mode::kLeads);
    EXPECT_LE(world.UntilHeard(), absl::Milliseconds(150));
    EXPECT_TRUE(world.ends.empty());
  }
}

TEST_P(ServerFailoverTest, AMachineThatIsGoneCostsItsHeadStart) {
  World world(kThree, GetParam());
  world.Set(0, Mode::kSilent);
  world.Set(2, Mode::kLeads);
  EXPECT_LE(world.UntilHeard(), ServerSearch::kHeadStart + absl::Milliseconds(150));
}

TEST_P(ServerFailoverTest, AnAgentWithSomethingToSayIsAtTheNextLeaderAtOnce) {
  World world(kThree, GetParam());
  Settle(world);
  world.Set(0, Mode::kRefuses);
  world.ReportNow();
  world.RunUntil(world.now + absl::Milliseconds(300));
  world.Set(1, Mode::kLeads);
  EXPECT_LE(world.UntilHeard(), absl::Milliseconds(450));
  EXPECT_EQ(world.connected.back(), 1U);
}

TEST_P(ServerFailoverTest, WhatComesUpWithoutAStreamHastensTheNextRound) {
  World world(kThree, GetParam());
  Settle(world);
  world.Set(0, Mode::kRefuses);
  world.Set(1, Mode::kLeads);
  world.RunUntil(world.now + kTrip);
  world.ReportNow();
  EXPECT_LE(world.UntilHeard(), absl::Milliseconds(250));
}

TEST(ServerFailover, AgentsWithNothingToSayComeBackSpreadOut) {
  std::set<int64_t> slots;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    World world(kThree, seed);
    Settle(world);
    world.Set(0, Mode::kRefuses);
    world.Set(1, Mode::kLeads);
    const absl::Duration took = world.UntilHeard();
    EXPECT_LE(took, absl::Seconds(3.2));
    slots.insert(took / absl::Milliseconds(500));
  }
  EXPECT_GE(slots.size(), 6U);
}

TEST_P(ServerFailoverTest, AnAgentMovesAwayFromALeaderThatHangs) {
  World world(kThree, GetParam());
  Settle(world);
  const absl::Time paused = world.now;
  world.Set(0, Mode::kSilent);
  world.ReportNow();
  world.RunUntil(paused + absl::Seconds(3));  // The lease has ended.
  EXPECT_TRUE(world.ends.empty()) << "the stream is kept until another server answers";
  world.Set(2, Mode::kLeads);
  ASSERT_LE(world.UntilHeard(), absl::Milliseconds(400));
  EXPECT_EQ(world.connected.back(), 2U);
  ASSERT_EQ(world.ends.size(), 1U);
  EXPECT_EQ(world.ends[0],
            absl::UnavailableError("it does not answer in time, and c:1 takes connections"));
}

// It reads nothing, so that what is written first blocks all that comes behind it, and no report is
// on its way.
TEST_P(ServerFailoverTest, AnAgentMovesAwayFromALeaderThatTakesNoMessageAnyMore) {
  World world(kThree, GetParam());
  Settle(world);
  const absl::Time paused = world.now;
  world.blocked = true;
  world.Set(0, Mode::kSilent);
  world.AskNow();
  world.ReportNow();
  world.RunUntil(paused + absl::Seconds(3));
  EXPECT_TRUE(world.ends.empty()) << "the stream is kept until another server answers";
  world.Set(2, Mode::kLeads);
  ASSERT_LE(world.UntilHeard(), absl::Milliseconds(400));
  EXPECT_EQ(world.connected.back(), 2U);
}

TEST_P(ServerFailoverTest, AMessageThatIsTakenLateIsNoReasonToMove) {
  World world(kThree, GetParam());
  Settle(world);
  world.blocked = true;
  world.Set(0, Mode::kSilent);
  world.AskNow();
  world.RunUntil(world.now + absl::Seconds(2));
  world.TakeMessage();
  world.Set(0, Mode::kLeads);
  world.Set(1, Mode::kTurnsAway);
  world.RunUntil(world.now + absl::Minutes(1));
  EXPECT_TRUE(world.ends.empty());
}

// A leader that is cut off from the store answers at once, and the next one may be slow, since all
// agents come to it.
TEST_P(ServerFailoverTest, AnAgentDoesNotGoBackToALeaderThatTurnsItAway) {
  for (const absl::Duration handshake : {2 * kTrip, absl::Duration(absl::Seconds(2))}) {
    World world(kThree, GetParam());
    Settle(world);
    world.handshake = handshake;
    world.Set(0, Mode::kTurnsAway);
    world.ReportNow();
    world.RunUntil(world.now + absl::Seconds(1));
    world.Set(2, Mode::kLeads);
    EXPECT_LE(world.UntilHeard(), handshake + absl::Seconds(1));
    EXPECT_EQ(world.connected.back(), 2U);
  }
}

TEST_P(ServerFailoverTest, AReportSaidLateInTheOutageIsAsFast) {
  World world(kThree, GetParam());
  Settle(world);
  const absl::Time paused = world.now;
  world.Set(0, Mode::kSilent);
  world.RunUntil(paused + absl::Seconds(2.5));
  world.ReportNow();
  world.RunUntil(paused + absl::Seconds(3));
  world.Set(2, Mode::kLeads);
  world.UntilHeard();
  EXPECT_LE(world.now - paused, absl::Seconds(2.5) + SessionMachine::kSlow + absl::Seconds(0.2));
}

TEST_P(ServerFailoverTest, ALeaderThatHangsForAWhileKeepsItsAgents) {
  World world(kThree, GetParam());
  Settle(world);
  world.ack_after = absl::Seconds(2);
  world.ReportNow();
  world.RunUntil(world.now + absl::Seconds(10));
  EXPECT_EQ(world.connected, std::vector<size_t>{0});
  EXPECT_TRUE(world.ends.empty());
  const int dials = world.dials;
  world.RunUntil(world.now + absl::Hours(1));
  EXPECT_EQ(world.dials, dials) << "nobody is dialled once it has answered";
}

TEST_P(ServerFailoverTest, BehindOneNameTheNextLeaderIsFoundToo) {
  World world({"service:1"}, GetParam());
  Settle(world);
  world.ack_after = absl::InfiniteDuration();  // The server of the stream hangs for good.
  world.ReportNow();
  // A connection that is made now leads to the next.
  EXPECT_LE(world.UntilHeard(), SessionMachine::kSlowAlone + absl::Milliseconds(100));
  EXPECT_EQ(world.connected.size(), 2U);
}

TEST_P(ServerFailoverTest, AServerThatIsSlowUnderTwoNamesIsMovedToMoreAndMoreSeldom) {
  World world({"a:1", "a.example:1"}, GetParam());
  Settle(world);
  world.modes[1] = Mode::kLeads;
  world.ack_after = absl::InfiniteDuration();
  const absl::Time end = world.now + absl::Minutes(5);
  while (world.now < end) {
    world.ReportNow();
    world.RunUntil(world.now + absl::Milliseconds(100));
  }
  EXPECT_LE(world.connected.size(), 10U);
}

TEST_P(ServerFailoverTest, AnHourWithoutAnyServerCostsLittle) {
  World world(kThree, GetParam());
  Settle(world);
  world.Set(0, Mode::kRefuses);
  world.ReportNow();
  const int dials = world.dials;
  world.RunUntil(world.now + absl::Hours(1));
  EXPECT_LE(world.dials - dials, 3 * 600);
  world.Set(1, Mode::kLeads);
  EXPECT_LE(world.UntilHeard(), absl::Seconds(31));
  EXPECT_THAT(std::string(world.ends.back().message()),
              testing::HasSubstr("a:1: refused; b:1: refused; c:1: refused"));
}

TEST_P(ServerFailoverTest, ASessionThatBreaksAtOnceIsNoReasonToHurry) {
  World world(kThree, GetParam());
  world.Set(0, Mode::kLeads);
  for (int i = 0; i < 20; ++i) {
    world.UntilHeard();
    world.ReportNow();
    world.Set(0, Mode::kRefuses);
    world.RunUntil(world.now + 2 * kTrip);
    world.Set(0, Mode::kLeads);
  }
  const absl::Time begin = world.now;
  world.UntilHeard();
  EXPECT_GE(world.now - begin, absl::Seconds(2));
}

INSTANTIATE_TEST_SUITE_P(Seeds, ServerFailoverTest, testing::Range<uint64_t>(1, 101));

}  // namespace
}  // namespace spoke::netagent
