#include "admin-cli/testing/command_fixture.h"

namespace spoke::ctl {
namespace {

using testing::HasSubstr;

class WaitTest : public CommandTest {
 protected:
  WaitTest() { Change(FillCluster); }
  // Has `change` happen while the verb waits, after so many looks.
  void After(size_t looks, const std::function<void(FakeState&)>& change) {
    for (size_t i = 1; i < looks; ++i) between_.emplace_back([] {});
    between_.emplace_back([this, change] { Change(change); });
  }
};

TEST_F(WaitTest, WhatIsSoAlreadyIsNotWaitedFor) {
  const Outcome outcome = Run("node wait node1 --for connected");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "node1 is connected\n");
  EXPECT_EQ(Run("node wait node2 --for away -o name").out, "node2\n");
}

TEST_F(WaitTest, WaitsForAllOfThem) {
  After(3, [](FakeState& state) { state.nodes["node2"].set_connected(true); });
  const Outcome outcome = Run("node wait node1 node2 --for connected");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "node1 is connected\nnode2 is connected\n");
  EXPECT_TRUE(between_.empty());
}

TEST_F(WaitTest, ANodeIsEmptyOnceNothingIsAttachedOrOnItsWay) {
  Change([](FakeState& state) {
    state.nodes["node1"].set_attached(0);
    state.nodes["node1"].set_detaching(2);
  });
  After(2, [](FakeState& state) { state.nodes["node1"].set_detaching(0); });
  EXPECT_EQ(Run("node wait node1 --for empty").code, 0);
  EXPECT_TRUE(between_.empty());
}

TEST_F(WaitTest, SaysWhatKeepsANodeFromBeingEmpty) {
  Change([](FakeState& state) {
    state.nodes["node1"].set_attached(0);
    state.nodes["node1"].set_attaching(1);
    state.nodes["node1"].set_detaching(2);
  });
  for (int i = 0; i < 3; ++i) between_.emplace_back([] {});
  EXPECT_THAT(
      Run("node wait node1 --for empty --within 1s").err,
      HasSubstr("not empty within 1s: node1 (connected, active, 1 attaching, 2 detaching)"));
}

TEST_F(WaitTest, ANodeThatRefusesItsPolicyIsNotSynced) {
  Change([](FakeState& state) { state.nodes["node1"].set_policy_error("line 3"); });
  for (int i = 0; i < 10; ++i) between_.emplace_back([] {});
  const Outcome outcome = Run("node wait node1 --for synced --within 5s");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("not synced within 5s: node1 (connected, active, 16 attached, "
                                     "refuses its policy)"));
  EXPECT_EQ(outcome.out, "");
}

TEST_F(WaitTest, GoesOnWhileTheServerIsAway) {
  Refuse("GetNode", absl::UnavailableError("the server stops"));
  After(2, [](FakeState& state) { state.refusals.clear(); });
  EXPECT_EQ(Run("node wait node1 --for connected").code, 0);
}

TEST_F(WaitTest, WrongNamesAndConditionsAreNotWaitedFor) {
  const Outcome none = Run("node wait nodee1 --for connected");
  EXPECT_EQ(none.code, 4);
  EXPECT_THAT(none.err, HasSubstr("did you mean node1?"));
  EXPECT_EQ(Run("node wait node1 --for happy").code, 2);
  EXPECT_EQ(Run("node wait node1").code, 2);
  EXPECT_EQ(Run("node wait --for away").code, 2);
}

}  // namespace
}  // namespace spoke::ctl
