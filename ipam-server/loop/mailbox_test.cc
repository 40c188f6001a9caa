#include "ipam-server/loop/mailbox.h"

#include "gtest/gtest.h"
#include "ipam-server/ledger/fleet.h"
#include "ipam-server/loop/event_ring.h"
#include "ipam-server/loop/fleet_loop.h"
#include "tests/support/recording_log.h"

namespace spoke::ipam {
namespace {

HelloEvent HelloOf(SessionId session) {
  return {session, {.node = {.node_name = "node" + std::to_string(session), .vm_id = "vm"}}};
}

ReportEvent ReportOf(SessionId session, size_t in_use) {
  ReportEvent event{.session = session};
  event.report.in_use.resize(in_use);
  return event;
}

std::vector<SessionId> SessionsOf(const std::vector<AgentEvent>& events) {
  std::vector<SessionId> sessions;
  for (const AgentEvent& event : events) sessions.push_back(std::get<ReportEvent>(event).session);
  return sessions;
}

TEST(Mailbox, HellosAreAdmittedAFewAtATimeAndKeepTheirOrder) {
  Mailbox mailbox;
  for (SessionId session = 1; session <= 5; ++session) mailbox.Post(HelloOf(session));
  auto taken = mailbox.Take(absl::ZeroDuration(), {.work = 2 * WorkOf(HelloOf(1))});
  ASSERT_EQ(taken->hellos.size(), 2U);
  EXPECT_EQ(taken->hellos[1].session, 2U);
  EXPECT_EQ(mailbox.waiting_hellos(), 3U);
  taken = mailbox.Take(absl::ZeroDuration(), {});
  EXPECT_EQ(taken->hellos.back().session, 5U);
}

TEST(Mailbox, WhatIsTakenAtOnceIsBoundedByItsWorkAndKeepsItsOrder) {
  Mailbox mailbox;
  for (SessionId session = 1; session <= 3; ++session) {
    mailbox.Post(AgentEvent(ReportOf(session, 100)));
  }
  mailbox.Post(AgentEvent(ReportOf(4, 5000)));
  mailbox.Post(AgentEvent(ReportOf(5, 1)));
  const auto take = [&] {
    return SessionsOf(mailbox.Take(absl::ZeroDuration(), {.work = 250})->agents);
  };
  EXPECT_EQ(take(), (std::vector<SessionId>{1, 2}));
  EXPECT_EQ(take(), std::vector<SessionId>{3});
  EXPECT_EQ(take(), std::vector<SessionId>{4}) << "too much for a turn, and has one of its own";
  EXPECT_EQ(take(), std::vector<SessionId>{5});
  EXPECT_EQ(mailbox.waiting_agents(), 0U);
}

TEST(Mailbox, AgentsThatComeBackGetAFourthWhileOthersAreAtWorkAndElseWhatIsLeft) {
  Mailbox mailbox;
  for (SessionId session = 1; session <= 10; ++session) {
    mailbox.Post(AgentEvent(ReportOf(session, 96)));
    mailbox.Post(HelloOf(100 + session));
  }
  const size_t of_hello = WorkOf(HelloOf(1));
  auto taken = mailbox.Take(absl::ZeroDuration(), {.work = 400});
  EXPECT_EQ(taken->agents.size(), 3U);
  EXPECT_EQ(taken->hellos.size(), 100 / of_hello);
  mailbox.Take(absl::ZeroDuration(), {.work = 100'000});
  mailbox.Post(AgentEvent(ReportOf(1, 196)));
  mailbox.Post(AgentEvent(ReportOf(2, 196)));
  EXPECT_EQ(mailbox.Take(absl::ZeroDuration(), {.work = 400})->agents.size(), 2U);
  mailbox.Post(AgentEvent(ReportOf(1, 96)));
  for (SessionId session = 101; session <= 120; ++session) mailbox.Post(HelloOf(session));
  taken = mailbox.Take(absl::ZeroDuration(), {.work = 400});
  EXPECT_EQ(taken->hellos.size(), 300 / of_hello);
}

TEST(Mailbox, AgentsGetLessOfATurnInWhichAnOperatorChangesSomething) {
  Mailbox mailbox;
  for (SessionId session = 1; session <= 10; ++session) {
    mailbox.Post(AgentEvent(ReportOf(session, 96)));
  }
  mailbox.Post(OperatorEvent(ChangeEvent{}));
  EXPECT_EQ(mailbox.Take(absl::ZeroDuration(), {.work = 800})->agents.size(), 2U);
  ASSERT_TRUE(mailbox.NextChange().has_value());
  EXPECT_EQ(mailbox.Take(absl::ZeroDuration(), {.work = 800})->agents.size(), 8U);
}

TEST(Mailbox, AgentsThatComeBackWaitWhereTheyAreNotLetIn) {
  Mailbox mailbox;
  mailbox.Post(HelloOf(1));
  mailbox.Post(AgentEvent(ReportOf(2, 1)));
  auto taken = mailbox.Take(absl::ZeroDuration(), {.hellos = false});
  EXPECT_TRUE(taken->hellos.empty());
  EXPECT_EQ(taken->agents.size(), 1U);
  EXPECT_EQ(mailbox.Take(absl::ZeroDuration(), {})->hellos.size(), 1U);
}

TEST(Mailbox, OperatorsAreServedWhileAgentsWait) {
  Mailbox mailbox;
  mailbox.Post(HelloOf(1));
  mailbox.Post(AgentEvent(ReportEvent{1, {}}));
  mailbox.Post(QueryEvent{[](const FleetView&) {}});
  mailbox.Post(OperatorEvent(AskTracesEvent{.node = "node1"}));
  const auto taken = mailbox.Take(absl::ZeroDuration(), {.agents = false});
  EXPECT_TRUE(taken->agents.empty());
  EXPECT_TRUE(taken->hellos.empty());
  EXPECT_EQ(mailbox.waiting_agents(), 1U);
  EXPECT_TRUE(mailbox.NextChange().has_value());
  EXPECT_FALSE(mailbox.NextChange().has_value());
  EXPECT_TRUE(mailbox.NextQuery().has_value());
  EXPECT_FALSE(mailbox.NextQuery().has_value());
}

// A broken connection would otherwise look like two agents under one identity, once others have
// much to say.
TEST(Mailbox, AHelloDoesNotOvertakeTheEndOfTheSessionBeforeIt) {
  Mailbox mailbox;
  for (SessionId session = 10; session < 20; ++session) {
    mailbox.Post(AgentEvent(ReportOf(session, 100)));
  }
  for (SessionId session = 1; session <= 3; ++session) mailbox.PostClosed(session);
  mailbox.Post(HelloOf(30));
  const Mailbox::Lanes lanes{.work = 3 * WorkOf(AgentEvent(ClosedEvent{1}))};
  auto taken = mailbox.Take(absl::ZeroDuration(), lanes);
  EXPECT_EQ(taken->agents.size(), 3U) << "a report, and two that ended";
  EXPECT_TRUE(taken->hellos.empty());
  taken = mailbox.Take(absl::ZeroDuration(), lanes);
  EXPECT_EQ(std::get<ClosedEvent>(taken->agents.back()).session, 3U);
  EXPECT_EQ(taken->hellos.size(), 1U);
  EXPECT_EQ(mailbox.waiting_agents(), 8U);
}

TEST(Mailbox, WhatASessionSaidIsReadBeforeItsEnd) {
  Mailbox mailbox;
  mailbox.Post(AgentEvent(ReportOf(1, 100)));
  mailbox.Post(AgentEvent(ReportOf(2, 100)));
  mailbox.PostClosed(2);
  const Mailbox::Lanes lanes{.work = 150};
  EXPECT_EQ(mailbox.Take(absl::ZeroDuration(), lanes)->agents.size(), 1U);
  const auto taken = mailbox.Take(absl::ZeroDuration(), lanes);
  ASSERT_EQ(taken->agents.size(), 2U);
  EXPECT_TRUE(std::holds_alternative<ReportEvent>(taken->agents[0]));
  EXPECT_TRUE(std::holds_alternative<ClosedEvent>(taken->agents[1]));
}

TEST(Mailbox, ASessionThatEndsTakesItsWaitingHelloWithIt) {
  Mailbox mailbox;
  mailbox.Post(HelloOf(1));
  mailbox.Post(HelloOf(2));
  mailbox.PostClosed(1);
  mailbox.PostClosed(7);  // Its Hello was taken before.
  const auto taken = mailbox.Take(absl::ZeroDuration(), {});
  ASSERT_EQ(taken->hellos.size(), 1U);
  EXPECT_EQ(taken->hellos[0].session, 2U);
  ASSERT_EQ(taken->agents.size(), 1U);
  EXPECT_EQ(std::get<ClosedEvent>(taken->agents[0]).session, 7U);
}

TEST(Mailbox, NothingIsTakenAfterTheEnd) {
  Mailbox mailbox;
  mailbox.Post(HelloOf(1));
  mailbox.Stop();
  EXPECT_FALSE(mailbox.Take(absl::Hours(1), {}).has_value());
}

TEST(EventRing, KeepsTheNewestAndPassesEverythingOn) {
  testing_support::RecordingLog log;
  os::SimClock clock;
  EventRing ring(log, clock);
  ring.Debug("not_kept");
  for (size_t i = 0; i < EventRing::kKept + 5; ++i) ring.Warn("event", {{"number", i}});
  const std::vector<LoggedEvent> all = ring.Since(0, EventRing::kKept);
  ASSERT_EQ(all.size(), EventRing::kKept);
  EXPECT_EQ(all.front().fields[0].second, "5");
  EXPECT_EQ(all.back().number, EventRing::kKept + 5);
  EXPECT_EQ(ring.Since(all.back().number, 9).size(), 0U);
  EXPECT_EQ(ring.Since(0, 2).front().number, EventRing::kKept + 4);
  EXPECT_EQ(log.Count("event"), static_cast<int>(EventRing::kKept + 5));
}

}  // namespace
}  // namespace spoke::ipam
