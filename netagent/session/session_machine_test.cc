#include "netagent/session/session_machine.h"

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Connect = SessionMachine::Connect;
using Dial = SessionMachine::Dial;
using StopDials = SessionMachine::StopDials;
using Send = SessionMachine::Send;
using EndWrites = SessionMachine::EndWrites;
using Cut = SessionMachine::Cut;
using Apply = SessionMachine::Apply;
using Connected = SessionMachine::Connected;
using Refused = SessionMachine::Refused;
using Disconnected = SessionMachine::Disconnected;
using FromServer = SessionMachine::FromServer;
using Unreadable = SessionMachine::Unreadable;
using node_api::AssignmentReport;
using node_api::DesiredAck;
using node_api::DesiredState;
using node_api::ReportAck;
using node_api::Welcome;

ip::Address A(std::string_view text) { return ip::Address::Parse(text).value(); }

node_api::Assignment AssignmentOf(std::string_view address) {
  node_api::Assignment assignment;
  assignment.address = A(address);
  assignment.generation = 7;
  return assignment;
}

std::string TextOf(const node_api::AgentMessage& message) {
  if (std::holds_alternative<node_api::Hello>(message)) return "hello";
  if (const auto* report = std::get_if<AssignmentReport>(&message)) {
    return fmt::format("report {} of {}", report->sequence,
                       report->in_use.size() + report->cooled.size());
  }
  if (const auto* ack = std::get_if<DesiredAck>(&message))
    return fmt::format("ack {}", ack->version);
  if (std::holds_alternative<node_api::Demand>(message)) return "demand";
  return "another";
}

struct Printer {
  std::string operator()(const Dial& e) const { return fmt::format("dial {}", e.server); }
  std::string operator()(const StopDials&) const { return "stop dials"; }
  std::string operator()(const Connect& e) const { return fmt::format("connect {}", e.server); }
  std::string operator()(const Send& e) const { return "send " + TextOf(e.message); }
  std::string operator()(const EndWrites&) const { return "end writes"; }
  std::string operator()(const Cut&) const { return "cut"; }
  std::string operator()(const Apply& e) const {
    const auto* desired = std::get_if<DesiredState>(&e.request);
    if (desired == nullptr) return "apply another";
    return fmt::format("apply {}{}", desired->version, desired->store_token);
  }
  std::string operator()(const Connected& e) const {
    return "connected " + e.welcome.server_version;
  }
  std::string operator()(const Refused&) const { return "refused"; }
  std::string operator()(const Disconnected& e) const {
    return fmt::format("disconnected {}{}", absl::StatusCodeToString(e.why.code()),
                       e.is_news ? " news" : "");
  }
};

// Plays a script of events and compares the effects of each. The edge is played as well: a stream
// that is cut ends when the script says so.
class SessionMachineTest : public testing::Test {
 protected:
  std::vector<std::string> Did(const SessionMachine::Effects& effects) {
    std::vector<std::string> out;
    for (const SessionMachine::Effect& effect : effects)
      out.push_back(std::visit(Printer(), effect));
    return out;
  }
  std::vector<std::string> Tick() { return Did(machine_.Tick(now_)); }
  // Does what is due, and answers the dial of the only server.
  std::vector<std::string> Call() {
    const auto dials = Tick();
    if (dials != std::vector<std::string>{"dial 0"}) return dials;
    const auto did = Dialled(0);
    if (did == std::vector<std::string>{"stop dials", "connect 0"}) return {"connect"};
    return did;
  }
  std::vector<std::string> Dialled(size_t server, const absl::Status& outcome = absl::OkStatus()) {
    return Did(machine_.OnDialled(server, outcome, now_, 0.5));
  }
  std::vector<std::string> Begin() { return Did(machine_.Begin(greeting_, now_)); }
  std::vector<std::string> Sent() { return Did(machine_.OnSent(now_)); }
  template <typename Message>
  std::vector<std::string> Hear(Message message) {
    if constexpr (!std::is_same_v<Message, Unreadable>) {
      return Did(machine_.OnReceived(node_api::ServerMessage(std::move(message)), now_));
    }
    return Did(machine_.OnReceived(std::move(message), now_));
  }
  std::vector<std::string> Desired(uint64_t version, std::string token = "") {
    DesiredState desired;
    desired.version = version;
    desired.store_token = std::move(token);
    return Hear(std::move(desired));
  }
  std::vector<std::string> Lose(const absl::Status& why = absl::UnavailableError("lost")) {
    return Did(machine_.OnDisconnected(why, std::nullopt, now_, 0.5));
  }
  template <typename Message>
  std::vector<std::string> Say(const Message& message) {
    return Did(machine_.Say(message, now_));
  }
  AssignmentReport Assigned(std::string_view address) {
    AssignmentReport report;
    report.in_use = {AssignmentOf(address)};
    return report;
  }

  // Opens a stream up to the welcome, with nothing in flight.
  void Open() {
    machine_.Start(0, now_, 0.0);
    Reopen();
  }
  void Reopen(absl::Duration reconnect_within = absl::ZeroDuration()) {
    now_ = machine_.NextWake();
    ASSERT_THAT(Call(), ElementsAre("connect"));
    ASSERT_THAT(Begin(), ElementsAre("send hello"));
    ASSERT_THAT(Sent(), IsEmpty());
    ASSERT_THAT(Hear(Welcome{.server_version = "1.4.0", .reconnect_within = reconnect_within}),
                ElementsAre("connected 1.4.0"));
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  Greeting greeting_;
  SessionMachine machine_{{.servers = {"a"},
                           .agent_version = "1.4.0",
                           .farewell = absl::Seconds(2),
                           .patience = absl::Minutes(2),
                           .reconnect = {.first_connect = absl::Seconds(10)}}};
};

TEST_F(SessionMachineTest, BeforeTheStartNothingIsDueAndThenTheFirstAttemptIsSpread) {
  EXPECT_EQ(machine_.NextWake(), absl::InfiniteFuture());
  machine_.Start(0, now_, 0.5);
  EXPECT_EQ(machine_.NextWake(), now_ + absl::Seconds(5));
  EXPECT_THAT(Tick(), IsEmpty());
  now_ += absl::Seconds(5);
  EXPECT_THAT(Call(), ElementsAre("connect"));
  EXPECT_THAT(Tick(), IsEmpty()) << "one stream at a time";
}

TEST_F(SessionMachineTest, NothingIsSaidBeforeTheHelloAndOneThingAtATime) {
  machine_.Start(0, now_, 0.0);
  ASSERT_THAT(Call(), ElementsAre("connect"));
  EXPECT_THAT(Say(DesiredAck{1}), IsEmpty());
  greeting_.demand.waiting = {{"web", 1}};
  EXPECT_THAT(Begin(), ElementsAre("send hello"));
  EXPECT_THAT(Begin(), IsEmpty()) << "one hello a stream";
  EXPECT_THAT(Say(DesiredAck{2}), IsEmpty()) << "the hello is in flight";
  EXPECT_THAT(Sent(), ElementsAre("send ack 2"));
  EXPECT_THAT(Sent(), ElementsAre("send demand"));
  EXPECT_THAT(Sent(), IsEmpty());
}

TEST_F(SessionMachineTest, AReportWaitsALittleForCompanyAndThenForItsAcknowledgement) {
  Open();
  EXPECT_THAT(Say(Assigned("10.1.0.16")), IsEmpty());
  EXPECT_EQ(machine_.NextWake(), now_ + SessionMachine::kReportPause);
  EXPECT_THAT(Say(Assigned("10.1.0.17")), IsEmpty());
  now_ = machine_.NextWake();
  EXPECT_THAT(Tick(), ElementsAre("send report 1 of 2"));
  const absl::Time dial_again = now_ + SessionMachine::kSlowAlone;
  EXPECT_EQ(machine_.NextWake(), dial_again);
  EXPECT_THAT(Sent(), IsEmpty());
  EXPECT_THAT(Say(Assigned("10.1.0.18")), IsEmpty());
  EXPECT_EQ(machine_.NextWake(), dial_again) << "it waits for the server, not for time";
  EXPECT_THAT(Hear(ReportAck{1}), IsEmpty());
  now_ = machine_.NextWake();
  EXPECT_THAT(Tick(), ElementsAre("send report 2 of 1"));
}

TEST_F(SessionMachineTest, AcknowledgementsThatComeTwiceOrLateReleaseNothing) {
  Open();
  const auto report = [this](std::string_view address) {
    Say(Assigned(address));
    now_ += SessionMachine::kReportPause;
    return Tick();
  };
  ASSERT_THAT(report("10.1.0.16"), ElementsAre("send report 1 of 1"));
  Sent();
  Hear(ReportAck{1});
  ASSERT_THAT(report("10.1.0.17"), ElementsAre("send report 2 of 1"));
  Sent();
  Hear(ReportAck{1});
  EXPECT_THAT(report("10.1.0.18"), IsEmpty()) << "report 2 is not acknowledged";
  Hear(ReportAck{2});
  Hear(ReportAck{2});
  now_ += SessionMachine::kReportPause;
  EXPECT_THAT(Tick(), ElementsAre("send report 3 of 1"));
}

TEST_F(SessionMachineTest, ASecondWelcomeIsNoSecondSessionAndADesiredStateIsAppliedAsOftenAsSaid) {
  Open();
  EXPECT_THAT(Hear(Welcome{.server_version = "1.4.0"}), IsEmpty());
  EXPECT_THAT(Hear(Welcome{.server_version = "9.0.0"}), IsEmpty());
  EXPECT_THAT(Desired(3), ElementsAre("apply 3"));
  EXPECT_THAT(Desired(3), ElementsAre("apply 3")) << "it is a state, which may be applied twice";
}

TEST_F(SessionMachineTest, AStoreTokenThatGoesBackwardsReachesTheAgentAsItIs) {
  // Only the server can read tokens: that of an older store must reach the next hello.
  Open();
  EXPECT_THAT(Desired(1, " new"), ElementsAre("apply 1 new"));
  EXPECT_THAT(Desired(2, " old"), ElementsAre("apply 2 old"));
  Lose();
  greeting_.hello.store_token = "old";
  now_ = machine_.NextWake();
  Call();
  const SessionMachine::Effects effects = machine_.Begin(greeting_, now_);
  ASSERT_EQ(effects.size(), 1U);
  const auto& hello = std::get<node_api::Hello>(std::get<Send>(effects[0]).message);
  EXPECT_EQ(hello.store_token, "old");
}

TEST_F(SessionMachineTest, AServerThatAnswersNeverIsCalledAgainMoreAndMoreSeldom) {
  machine_.Start(0, now_, 0.0);
  absl::Duration longest;
  for (int i = 0; i < 12; ++i) {
    now_ = machine_.NextWake();
    ASSERT_THAT(Call(), ElementsAre("connect"));
    ASSERT_THAT(Begin(), ElementsAre("send hello"));
    Sent();
    EXPECT_EQ(machine_.NextWake(), now_ + absl::Minutes(2));
    now_ = machine_.NextWake();
    EXPECT_THAT(Tick(), ElementsAre("cut"));
    EXPECT_EQ(machine_.NextWake(), absl::InfiniteFuture()) << "cut once";
    EXPECT_THAT(Tick(), IsEmpty());
    EXPECT_THAT(Lose(absl::CancelledError("")),
                ElementsAre(i == 0 ? "disconnected DEADLINE_EXCEEDED news"
                                   : "disconnected DEADLINE_EXCEEDED"));
    EXPECT_GE(machine_.NextWake() - now_, longest);
    longest = machine_.NextWake() - now_;
  }
  EXPECT_EQ(longest, base::Backoff().Delay(100, 0.5));
}

TEST_F(SessionMachineTest, AnAgentThatCannotGreetIsAskedAgainOnANewStream) {
  machine_.Start(0, now_, 0.0);
  now_ = machine_.NextWake();
  ASSERT_THAT(Call(), ElementsAre("connect"));
  now_ = machine_.NextWake();
  EXPECT_THAT(Tick(), ElementsAre("cut"));
  EXPECT_THAT(Begin(), IsEmpty()) << "too late";
  Lose();
  Reopen();
}

TEST_F(SessionMachineTest, OnAHalfOpenConnectionNothingGrowsAndWhatIsSaidIsNotCarriedOver) {
  Open();
  // The server's machine is gone, and the kernel has room for one more message.
  ASSERT_THAT(Say(DesiredAck{1}), ElementsAre("send ack 1"));
  std::vector<std::string> did;
  int reports = 0;
  for (; did.empty() && reports < 100'000; ++reports) {
    AssignmentReport report;
    report.cooled = {ip::Address::V4(static_cast<uint32_t>(reports))};
    did = Say(report);
  }
  EXPECT_THAT(did, ElementsAre("cut"));
  EXPECT_EQ(reports, static_cast<int>(Outbox::kMaxWaitingEntries) + 1);
  EXPECT_THAT(Say(DesiredAck{2}), IsEmpty());
  EXPECT_THAT(Sent(), IsEmpty());
  EXPECT_THAT(Desired(7), IsEmpty()) << "a stream that is over is not listened to";
  EXPECT_THAT(Lose(absl::CancelledError("")), ElementsAre("disconnected UNAVAILABLE news"));
  Reopen();
  EXPECT_THAT(Say(DesiredAck{3}), ElementsAre("send ack 3"));
}

TEST_F(SessionMachineTest, BeginningAnewSaysWhatWaitsThenEndsAndIsNotTheServersFault) {
  Open();
  ASSERT_THAT(Say(DesiredAck{1}), ElementsAre("send ack 1"));
  Say(Assigned("10.1.0.16"));
  EXPECT_THAT(Did(machine_.BeginAnew("a test", now_)), IsEmpty());
  EXPECT_THAT(Did(machine_.BeginAnew("again", now_)), IsEmpty());
  EXPECT_THAT(Say(DesiredAck{2}), IsEmpty()) << "the next hello says it";
  EXPECT_THAT(Sent(), ElementsAre("send report 1 of 1")) << "without a pause";
  EXPECT_THAT(Sent(), ElementsAre("end writes"));
  EXPECT_THAT(Desired(5), ElementsAre("apply 5"));
  EXPECT_EQ(machine_.NextWake(), now_ + absl::Seconds(2));
  EXPECT_THAT(Lose(absl::OkStatus()), ElementsAre("disconnected ABORTED news"));
}

TEST_F(SessionMachineTest, AServerThatDoesNotLetGoIsCut) {
  Open();
  EXPECT_THAT(Did(machine_.BeginAnew("a test", now_)), ElementsAre("end writes"));
  now_ = machine_.NextWake();
  EXPECT_THAT(Tick(), ElementsAre("cut"));
  EXPECT_THAT(Lose(absl::CancelledError("")), ElementsAre("disconnected ABORTED news"));
}

TEST_F(SessionMachineTest, AServerThatDoesNotTakeTheLastWordsIsCutAsWell) {
  Open();
  ASSERT_THAT(Say(DesiredAck{1}), ElementsAre("send ack 1"));
  machine_.BeginAnew("a test", now_);
  EXPECT_EQ(machine_.NextWake(), now_ + absl::Minutes(2));
  now_ = machine_.NextWake();
  EXPECT_THAT(Tick(), ElementsAre("cut"));
}

TEST_F(SessionMachineTest, AMessageThatCannotBeIsRefusedAndAStateOfThatKindBeginsAnew) {
  Open();
  const absl::Status why = absl::InvalidArgumentError("no address");
  EXPECT_THAT(Hear(Unreadable{.why = why}), ElementsAre("refused"));
  EXPECT_THAT(Hear(Unreadable{.why = why, .is_desired = true}),
              ElementsAre("refused", "end writes"));
}

TEST_F(SessionMachineTest, AServerThatDoesNotFitIsCutNotListenedToAndAskedSlowly) {
  machine_.Start(0, now_, 0.0);
  for (const bool first : {true, false}) {
    now_ = machine_.NextWake();
    Call();
    Begin();
    Sent();
    EXPECT_THAT(Hear(Welcome{.server_version = "2.0.0"}), ElementsAre("cut"));
    EXPECT_THAT(Desired(1), IsEmpty());
    EXPECT_THAT(Lose(absl::CancelledError("")),
                ElementsAre(first ? "disconnected FAILED_PRECONDITION news"
                                  : "disconnected FAILED_PRECONDITION"));
    EXPECT_EQ(machine_.NextWake(), now_ + absl::Seconds(45));
  }
}

TEST_F(SessionMachineTest, AnUnreachableServerIsNewsOnceUntilOneIsReached) {
  machine_.Start(0, now_, 0.0);
  for (const char* want : {"disconnected UNAVAILABLE news", "disconnected UNAVAILABLE"}) {
    now_ = machine_.NextWake();
    ASSERT_THAT(Call(), ElementsAre("connect"));
    EXPECT_THAT(Lose(), ElementsAre(want));
    EXPECT_THAT(Lose(), IsEmpty()) << "one end a stream";
  }
  Reopen();
  EXPECT_THAT(Lose(absl::OkStatus()), ElementsAre("disconnected UNAVAILABLE news"));
}

TEST_F(SessionMachineTest, AServerSaysWithinWhichTimeAnAgentWithNothingToSayComesBack) {
  machine_.Start(0, now_, 0.0);
  Reopen(absl::Seconds(20));
  now_ += absl::Hours(1);
  Lose();
  EXPECT_EQ(machine_.NextWake(), now_ + absl::Seconds(10));
  Say(Assigned("10.1.0.4"));
  EXPECT_LE(machine_.NextWake(), now_ + ServerSearch::kStep) << "it has something to say now";
}

TEST_F(SessionMachineTest, LongSessionsThatEndAreTakenUpAgainSoon) {
  Open();
  now_ += absl::Hours(1);
  Lose();
  EXPECT_EQ(machine_.NextWake(), now_ + absl::Seconds(1.5));
}

}  // namespace
}  // namespace spoke::netagent
