#include "admin-cli/testing/command_fixture.h"

namespace spoke::ctl {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class LogsTest : public CommandTest {
 protected:
  LogsTest() {
    Change(FillCluster);
    Change([](FakeState& state) {
      state.node_data["log"] =
          "2026-11-27T12:00:00.000Z level=info event=ready\n"
          "2026-11-27T12:00:01.000Z level=warning event=cni_add_failed pod=a\x1b[2J\n"
          "2026-11-27T12:00:02.000Z level=error event=nic_unreadable\n";
      state.node_data["state"] = R"({"node": "node1", "pods": []})";
    });
  }
};

TEST_F(LogsTest, AreLinesOfALevelThatHoldAText) {
  const Outcome all = Run("logs node node1");
  EXPECT_EQ(all.code, 0) << all.err;
  EXPECT_THAT(all.out, AllOf(HasSubstr("event=ready\n"), HasSubstr("event=nic_unreadable\n"),
                             Not(HasSubstr("\x1b"))));
  const Outcome bad = Run("logs node node1 --level warning");
  EXPECT_THAT(bad.out, AllOf(Not(HasSubstr("ready")), HasSubstr("cni_add_failed"),
                             HasSubstr("nic_unreadable")));
  EXPECT_THAT(Run("logs node node1 --level error").out, Not(HasSubstr("cni_add_failed")));
  EXPECT_THAT(Run("logs node node1 --grep ready").out, Not(HasSubstr("nic_unreadable")));
  EXPECT_EQ(Json("logs node node1")["lines"].size(), 3U);
}

TEST_F(LogsTest, AreThoseOfATimeAndTheLastOfThem) {
  EXPECT_EQ(Run("logs node node1 --tail 1").out,
            "2026-11-27T12:00:02.000Z level=error event=nic_unreadable\n");
  EXPECT_EQ(Json("logs node node1 --tail 9")["lines"].size(), 3U);
  EXPECT_EQ(Json("logs node node1 --since 2026-11-27T12:00:01Z")["lines"].size(), 2U);
  EXPECT_EQ(Json("logs node node1 --since 2026-11-27T12:00:01Z --level error")["lines"].size(), 1U);
  EXPECT_EQ(Json("logs node node1 --since 2026-11-27T13:00:00Z")["lines"].size(), 0U);
  // What is no event of its own goes with the line before.
  Change([](FakeState& state) { state.node_data["log"] += "and what follows\n"; });
  EXPECT_EQ(Json("logs node node1 --since 2026-11-27T12:00:02Z")["lines"].size(), 2U);
  EXPECT_EQ(Json("logs node node1 --since 2026-11-27T13:00:00Z")["lines"].size(), 0U);
  EXPECT_EQ(Run("logs node node1 --tail 0").code, 2);
  EXPECT_EQ(Run("logs node node1 --since yesterday").code, 2);
}

TEST_F(LogsTest, WrongWordsAreTold) {
  const Outcome level = Run("logs node node1 --level loud");
  EXPECT_EQ(level.code, 2);
  EXPECT_THAT(level.err, HasSubstr("warning"));
  EXPECT_EQ(Run("logs node nobody").code, 4);
  EXPECT_EQ(Run("logs node").code, 2);
  Change([](FakeState& state) { state.node_data.erase("log"); });
  EXPECT_THAT(Run("logs node node1").err, HasSubstr("the agent of node node1 keeps no log"));
}

TEST_F(LogsTest, StateIsADocument) {
  const Outcome state = Run("node state node1");
  EXPECT_EQ(state.code, 0) << state.err;
  EXPECT_EQ(nlohmann::json::parse(state.out)["node"], "node1");
  Change([](FakeState& state) { state.node_data["state"] = "{"; });
  EXPECT_THAT(Run("node state node1").err, HasSubstr("is no JSON document"));
}

}  // namespace
}  // namespace spoke::ctl
