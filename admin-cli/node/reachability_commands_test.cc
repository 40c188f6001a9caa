#include "admin-cli/testing/command_fixture.h"

namespace spoke::ctl {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

v1::ProbeTally Tally(uint64_t probes, uint64_t lost) {
  v1::ProbeTally tally;
  tally.set_probes(probes);
  tally.set_lost(lost);
  tally.set_p50_us(420);
  tally.set_p99_us(12'000);
  return tally;
}

v1::ReachabilityNode Suspect(const std::string& name) {
  v1::ReachabilityNode node;
  node.set_name(name);
  node.set_group("2");
  *node.mutable_tally() = Tally(90, 18);
  node.set_peers(40);
  node.set_peers_lost(15);
  node.set_suspicion("18 of 90 probes between this node and others were lost");
  node.set_since_unix_ms(1);
  return node;
}

v1::ReachabilityBetween Pair(const std::string& a, const std::string& b, uint64_t lost) {
  v1::ReachabilityBetween between;
  between.set_a(a);
  between.set_b(b);
  *between.mutable_tally() = Tally(10, lost);
  return between;
}

class ReachabilityTest : public CommandTest {
 protected:
  ReachabilityTest() {
    Change(FillCluster);
    Change([](FakeState& state) {
      state.reachability.set_enabled(true);
      state.reachability.set_at_unix_ms(1000);
      state.reachability.set_window_s(180);
      state.reachability.set_nodes(7500);
      *state.reachability.mutable_all() = Tally(337'500, 20);
      state.reachability.set_group_label("topology.kubernetes.io/zone");
    });
  }
  v1::CheckNodesResponse CheckEnd() {
    v1::CheckNodesResponse end;
    end.set_over(true);
    *end.mutable_small() = Tally(6, 0);
    *end.mutable_full() = Tally(3, 0);
    for (const char* name : {"node1", "node2", "node3"}) {
      *end.add_nodes() = Suspect(name);
      end.mutable_nodes(end.nodes_size() - 1)->clear_suspicion();
    }
    return end;
  }
  void SayCheck(const v1::CheckNodesResponse& end) {
    Change([&](FakeState& state) {
      v1::CheckNodesResponse progress;
      progress.set_done(3);
      progress.set_total(6);
      state.check = {progress, end};
    });
  }
};

TEST_F(ReachabilityTest, SaysThatNobodyIsSuspected) {
  const Outcome outcome = Run("reachability show");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("7500 nodes probed each other in the last 180 s: 20 of "
                                           "337500 (0.0 %) lost, round trips 0.42 ms (p50)"),
                                 HasSubstr("no node is suspected")));
}

TEST_F(ReachabilityTest, TellsSuspectsAndPairsAndEndsWithOne) {
  Change([](FakeState& state) {
    *state.reachability.add_suspects() = Suspect("node2");
    *state.reachability.add_pairs() = Pair("node3", "node4", 9);
  });
  const Outcome outcome = Run("reachability show");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("18 of 90 (20.0 %)"), HasSubstr("15 of 40"),
                    HasSubstr("node2: 18 of 90 probes between"), HasSubstr("pairs that do not"),
                    HasSubstr("9 of 10 (90.0 %)"), Not(HasSubstr("no node is suspected"))));
  const nlohmann::json value = Json("reachability show");
  EXPECT_EQ(value["suspects"][0]["node"], "node2");
  EXPECT_EQ(value["suspects"][0]["lost"], 18);
  EXPECT_EQ(value["pairs"][0]["b"], "node4");
}

TEST_F(ReachabilityTest, WhatCannotBeJudgedIsNotWell) {
  Change([](FakeState& state) { state.reachability.set_unjudged("most probes were lost"); });
  const Outcome outcome = Run("reachability show");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("most probes were lost\n"));
}

TEST_F(ReachabilityTest, SaysWhyThereIsNothingToTell) {
  Change([](FakeState& state) { state.reachability.set_at_unix_ms(0); });
  const Outcome soon = Run("reachability show");
  EXPECT_EQ(soon.code, 5);
  EXPECT_THAT(soon.err, HasSubstr("no round of probes has ended yet"));
  Change([](FakeState& state) { state.reachability.Clear(); });
  const Outcome off = Run("reachability show");
  EXPECT_EQ(off.code, 5);
  EXPECT_THAT(off.err, HasSubstr("reachability.interval"));
}

TEST_F(ReachabilityTest, ANodeHasItsPeers) {
  Change([](FakeState& state) {
    *state.reachability.mutable_node() = Suspect("node2");
    *state.reachability.add_peers() = Pair("node2", "node7", 3);
    *state.reachability.add_peers() = Pair("node2", "node8", 0);
  });
  const Outcome outcome = Run("reachability node node2");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(server_.last_request(), "GetReachability node: \"node2\"");
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("node2: 18 of 90 (20.0 %) lost with 40 others"),
                                 HasSubstr("node7"), HasSubstr("0 of 10 (0.0 %)")));
  Change([](FakeState& state) { state.reachability.mutable_node()->clear_suspicion(); });
  EXPECT_EQ(Run("reachability node node2").code, 0);
  EXPECT_EQ(Run("reachability node").code, 2);
  Refuse("GetReachability", absl::NotFoundError("node node9 has had no probes"));
  EXPECT_EQ(Run("reachability node node9").code, 4);
}

TEST_F(ReachabilityTest, TheMatrixIsBetweenGroups) {
  Change([](FakeState& state) {
    *state.reachability.add_groups() = Pair("1", "2", 9);
    *state.reachability.add_groups() = Pair("1", "1", 0);
    *state.reachability.add_groups() = Pair("", "1", 0);
  });
  const Outcome outcome = Run("reachability matrix");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("by their label topology.kubernetes.io/zone"),
                                 HasSubstr("(none)"), HasSubstr("90.0 % 0.42 ms")));
}

TEST_F(ReachabilityTest, ACheckThatLosesNothingIsWell) {
  SayCheck(CheckEnd());
  const Outcome outcome = Run("check node1 node2 --job ml/train");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(server_.last_request(),
            "CheckNodes nodes: \"node1\" nodes: \"node2\" job: \"ml/train\" timeout_ms: 1000");
  EXPECT_THAT(outcome.out, HasSubstr("3 nodes: 0 of 6 (0.0 %) of small probes lost, 0 of 3 (0.0 %) "
                                     "of full size"));
  EXPECT_EQ(Json("check node1 node2")["well"], true);
}

TEST_F(ReachabilityTest, ACheckTellsPairsAndWhoCouldNotTry) {
  v1::CheckNodesResponse end = CheckEnd();
  *end.add_pairs() = Pair("node1", "node3", 2);
  end.set_pairs_lost(1);
  end.add_unheard("node9: its agent is not connected");
  SayCheck(end);
  const Outcome outcome = Run("check node1 node3 node9");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("2 of 10 (20.0 %)"), HasSubstr("1 pairs lost probes"),
                                 HasSubstr("node9: its agent is not connected\n"),
                                 HasSubstr("1 node could not try")));
}

TEST_F(ReachabilityTest, ACheckThatCannotBeMadeIsNoVerdict) {
  EXPECT_EQ(Run("check").code, 2);
  EXPECT_EQ(Run("check node1 node2 --within 0").code, 2);
  EXPECT_EQ(Run("check node1 node2").code, 2) << "the server said nothing";
  Refuse("CheckNodes", absl::NotFoundError("no pod of job ml/x has an address now"));
  EXPECT_EQ(Run("check --job ml/x").code, 4);
}

}  // namespace
}  // namespace spoke::ctl
