#include "ipam-server/jobs/mailbox.h"

#include "gtest/gtest.h"
#include "ipam-server/core/fleet.h"
#include "ipam-server/jobs/event_ring.h"
#include "ipam-server/jobs/fleet_loop.h"
#include "tests/support/recording_log.h"

namespace spoke::ipam {
namespace {

HelloEvent HelloOf(SessionId session) {
  return {session, {.key = {"node" + std::to_string(session), "vm"}}};
}

TEST(Mailbox, HellosAreAdmittedAFewAtATimeAndKeepTheirOrder) {
  Mailbox mailbox;
  for (SessionId session = 1; session <= 5; ++session) mailbox.Post(HelloOf(session));
  auto taken = mailbox.Take(absl::ZeroDuration(), {.most_hellos = 2});
  ASSERT_EQ(taken->hellos.size(), 2U);
  EXPECT_EQ(taken->hellos[1].session, 2U);
  EXPECT_EQ(mailbox.waiting_hellos(), 3U);
  taken = mailbox.Take(absl::ZeroDuration(), {.most_hellos = 9});
  EXPECT_EQ(taken->hellos.back().session, 5U);
}

TEST(Mailbox, OperatorsAreServedWhileAgentsWait) {
  Mailbox mailbox;
  mailbox.Post(HelloOf(1));
  mailbox.Post(AgentEvent(ReportEvent{1, {}}));
  mailbox.Post(OperatorEvent(QueryEvent{[](const FleetView&) {}}));
  const auto taken = mailbox.Take(absl::ZeroDuration(), {.agents = false});
  EXPECT_EQ(taken->operators.size(), 1U);
  EXPECT_TRUE(taken->agents.empty());
  EXPECT_TRUE(taken->hellos.empty());
  EXPECT_EQ(mailbox.waiting_agents(), 1U);
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
