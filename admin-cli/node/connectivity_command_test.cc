#include "admin-cli/testing/command_fixture.h"

namespace spoke::ctl {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

v1::PolicyProbe Probe(const std::string& target, bool expected, const std::string& outcome) {
  v1::PolicyProbe probe;
  probe.set_target(target);
  probe.set_expected(expected);
  probe.set_outcome(outcome);
  probe.set_reached(outcome == "reached" || outcome == "refused");
  probe.set_took_us(1500);
  return probe;
}

class ConnectivityTest : public CommandTest {
 protected:
  ConnectivityTest() {
    Change([](FakeState& state) {
      for (int i = 1; i <= 9; ++i) {
        const std::string name = "node" + std::to_string(i);
        state.nodes[name].set_name(name);
        state.nodes[name].set_mode("active");
        state.nodes[name].set_connected(true);
      }
    });
  }
  // Lets the nodes be those of the check, with `lost` between the first two.
  void SayCheck(const std::vector<std::string>& nodes, uint64_t lost = 0) {
    v1::CheckNodesResponse end;
    end.set_over(true);
    for (const std::string& node : nodes) end.add_nodes()->set_name(node);
    if (lost > 0) {
      end.set_pairs_lost(1);
      v1::ReachabilityBetween& pair = *end.add_pairs();
      pair.set_a(nodes[0]);
      pair.set_b(nodes[1]);
      pair.mutable_tally()->set_probes(3);
      pair.mutable_tally()->set_lost(lost);
    }
    Change([&](FakeState& state) { state.check = {end}; });
  }
  void SayProbes(const std::string& node, const std::vector<v1::PolicyProbe>& probes) {
    v1::VerifyPolicyResponse answer;
    answer.set_node(node);
    for (const v1::PolicyProbe& probe : probes) *answer.add_probes() = probe;
    Change([&](FakeState& state) { state.verified.push_back(answer); });
  }
  std::vector<std::string> Requests() {
    std::vector<std::string> requests;
    Change([&](FakeState& state) { requests = state.requests; });
    return requests;
  }
};

TEST_F(ConnectivityTest, FiveSpreadNodesProbeEachOther) {
  SayCheck({"node1", "node3", "node5", "node7", "node9"});
  const Outcome outcome = Run("connectivity test");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(server_.last_request(),
              AllOf(HasSubstr("CheckNodes"), HasSubstr("\"node1\""), HasSubstr("\"node5\""),
                    HasSubstr("\"node9\""), Not(HasSubstr("\"node2\""))));
  EXPECT_THAT(outcome.out, AllOf(ContainsRegex("PASS +node9 +nodes +4 others"),
                                 HasSubstr("all 5 tests passed"), Not(HasSubstr("FAIL"))));
}

TEST_F(ConnectivityTest, ALostPairFailsAndSaysWhatToDo) {
  SayCheck({"node1", "node2", "node3"}, 2);
  const std::string line = "connectivity test --node node1 --node node2 --node node3";
  const Outcome outcome = Run(line);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out, AllOf(ContainsRegex("FAIL +node1 +nodes +node2 +2 of 3 probes lost"),
                                 ContainsRegex("PASS +node3"), HasSubstr("1 of 2 tests failed"),
                                 HasSubstr("SpokeNodeLosesPackets.md")));
  const nlohmann::json value = Json(line);
  EXPECT_EQ(value["passed"], false);
  EXPECT_EQ(value["tests"][0]["target"], "node2");
  EXPECT_NE(value["tests"][0]["remedy"], "");
  EXPECT_EQ(value["tests"][1]["remedy"], "");
}

TEST_F(ConnectivityTest, EachTargetIsATestOfItsKind) {
  SayProbes("node1",
            {Probe("10.8.0.10:443", true, "refused"), Probe("192.0.2.10:443", true, "timed out"),
             Probe("10.32.0.10", false, "reached")});
  const Outcome outcome =
      Run("connectivity test --node node1 --to 10.8.0.10:443 --internet 192.0.2.10:443 "
          "--must-fail 10.32.0.10");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out, AllOf(ContainsRegex("PASS +node1 +to +10.8.0.10:443 +refused in 1.5 ms"),
                                 ContainsRegex("FAIL +node1 +internet +192.0.2.10:443 +timed out"),
                                 ContainsRegex("FAIL +node1 +must-fail +10.32.0.10 +reached"),
                                 HasSubstr("2 of 3 tests failed"), HasSubstr("EGRESS.md"),
                                 HasSubstr("rollout status")));
  EXPECT_THAT(server_.last_request(), HasSubstr("spoke_targets: \"10.32.0.10\""));
}

TEST_F(ConnectivityTest, HubAddressesThatTheServerChoseAreNoTests) {
  SayProbes("node1",
            {Probe("10.8.0.1", true, "timed out"), Probe("10.32.0.10", false, "timed out")});
  const Outcome outcome = Run("connectivity test --node node1 --must-fail 10.32.0.10");
  EXPECT_EQ(outcome.code, 0) << outcome.out;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("all 1 tests passed"), Not(HasSubstr("10.8.0.1 "))));
}

TEST_F(ConnectivityTest, WhatWasNotTriedHasNotPassed) {
  SayProbes("node1",
            {Probe("10.8.0.10", true, "reached"), Probe("10.32.0.10", false, "not tried")});
  SayCheck({"node1"});
  Change([](FakeState& state) { state.nodes["node3"].set_connected(false); });
  const Outcome outcome =
      Run("connectivity test --node node1 --node node2 --node node3 --to 10.8.0.10 "
          "--must-fail 10.32.0.10");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out,
              AllOf(ContainsRegex("FAIL +node1 +must-fail +10.32.0.10 +not tried"),
                    ContainsRegex("FAIL +node2 +agent +targets +did not answer"),
                    ContainsRegex("FAIL +node2 +nodes +1 other +no probe was answered for"),
                    ContainsRegex("FAIL +node3 +agent .*its agent is not connected"),
                    HasSubstr("SpokeAgentsAway.md")));
}

TEST_F(ConnectivityTest, WrongInputIsRefusedBeforeNodesAreAsked) {
  const Outcome port = Run("connectivity test --internet 192.0.2.10");
  EXPECT_EQ(port.code, 2);
  EXPECT_THAT(port.err, HasSubstr("192.0.2.10 has no port"));
  std::string many = "connectivity test";
  for (int i = 0; i < 21; ++i) many += " --node n" + std::to_string(i);
  EXPECT_THAT(Run(many).err, HasSubstr("at most 20"));
  const Outcome nobody = Run("connectivity test --node node77");
  EXPECT_NE(nobody.code, 0);
  EXPECT_NE(nobody.code, 1);
  EXPECT_THAT(nobody.err, HasSubstr("there is no node node77"));
  const Outcome alone = Run("connectivity test --node node1");
  EXPECT_THAT(alone.err, HasSubstr("one node alone has nothing to test"));
  EXPECT_EQ(Run("connectivity test --within never").code, 2);
  for (const std::string& request : Requests()) {
    EXPECT_THAT(request, AllOf(Not(HasSubstr("CheckNodes")), Not(HasSubstr("VerifyPolicy"))));
  }
  Refuse("VerifyPolicy", absl::FailedPreconditionError("no ClusterNetwork is applied"));
  const Outcome refused = Run("connectivity test --node node1 --to 10.8.0.10");
  EXPECT_NE(refused.code, 0);
  EXPECT_NE(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("no ClusterNetwork"));
}

TEST_F(ConnectivityTest, ACheckThatEndsEarlyIsNoSuccess) {
  const Outcome outcome = Run("connectivity test --node node1 --node node2");
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("ended the check early"));
}

}  // namespace
}  // namespace spoke::ctl
