// Tests of top namespaces, teams, pods and nodes, and of policy verify.
#include "admin-cli/testing/command_fixture.h"

namespace spoke::ctl {
namespace {

using testing::HasSubstr;
using testing::Not;

void AddEntry(v1::GetTrafficResponse& to, const std::string& name, const std::string& of_class,
              uint64_t sent, uint64_t received) {
  v1::TrafficEntry& entry = *to.add_entries();
  entry.set_name(name);
  entry.set_traffic_class(of_class);
  entry.set_sent(sent);
  entry.set_received(received);
}

class TrafficTest : public CommandTest {
 protected:
  // Adds one reading: `scale` is what has come together.
  void Read(int64_t now_ms, uint64_t scale) {
    Change([&](FakeState& state) {
      state.traffic.Clear();
      state.traffic.set_now_unix_ms(now_ms);
      state.traffic.set_nodes_reporting(7);
      AddEntry(state.traffic, "quiet", "internet", 2048, 1 << 20);
      AddEntry(state.traffic, "vision", "cluster", 1024 * scale, 0);
      AddEntry(state.traffic, "vision", "internet", 0, 1024 * scale * 20);
    });
  }
};

TEST_F(TrafficTest, TopShowsTotalsAndRatesOfTwoReadings) {
  Read(1000, 1);
  between_ = {[&] { Read(11'000, 11); }};
  const Outcome outcome = Run("top namespaces");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "All classes but loopback, of 7 nodes that report\n\n"
            "NAMESPACE  IN          OUT          RECEIVED  SENT\n"
            "vision     164 kbit/s  8.19 kbit/s  220 KiB   11 KiB\n"
            "quiet      0 bit/s     0 bit/s      1.0 MiB   2.0 KiB\n");
  Read(21'000, 11);
  between_ = {[&] { Read(31'000, 21); }};
  EXPECT_THAT(Run("top namespaces --bytes").out, HasSubstr("vision     20 KiB/s  1.0 KiB/s  "));
  EXPECT_THAT(server_.last_request(), HasSubstr("by: NAMESPACE"));
}

TEST_F(TrafficTest, TopShowsTheNamespacesOrPodsOfATeam) {
  Change([](FakeState& state) {
    state.objects[{"Team", "seeing"}] = "kind: Team";
    state.specs[{"Team", "seeing"}] = R"({"namespaces": ["vision", "sound"]})";
  });
  Read(1000, 1);
  EXPECT_EQ(Run("top namespaces --team seeing -o name").out, "vision\n");
  Change([](FakeState& state) {
    for (v1::TrafficEntry& entry : *state.traffic.mutable_entries()) {
      entry.set_name(entry.name() + "/pod");
    }
  });
  EXPECT_EQ(Run("top pods --team seeing -o name").out, "vision/pod\n");
  EXPECT_EQ(Run("top nodes --team seeing").code, 2);
  EXPECT_THAT(Run("top --team seeing").err, HasSubstr("spokectl top namespaces --team seeing"));
  EXPECT_EQ(Run("top pods --team nobody").code, 4);
}

TEST_F(TrafficTest, TopAsksForWhatIsNamedAndSorts) {
  Read(1000, 1);
  const Outcome outcome = Run("top pods --class internet --namespace ns --sort received");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("Class internet"));
  EXPECT_LT(outcome.out.find("quiet"), outcome.out.find("vision"));
  const std::string request = server_.last_request();
  EXPECT_THAT(request, HasSubstr("by: POD"));
  EXPECT_THAT(request, HasSubstr("traffic_class: \"internet\""));
  EXPECT_THAT(request, HasSubstr("pod_namespace: \"ns\""));
  EXPECT_THAT(Run("top teams -o wide").out, HasSubstr("cluster 0 B in 1.0 KiB out, internet"));
}

TEST_F(TrafficTest, TopIsJsonWithClassesToo) {
  Read(1000, 1);
  between_ = {[&] { Read(11'000, 11); }};
  const nlohmann::json rows = Json("top nodes");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0]["name"], "vision");
  EXPECT_EQ(rows[0]["received_per_second"], 20480.0);
  EXPECT_EQ(rows[0]["classes"]["cluster"]["sent"], 11264);
  // There are no rates without a second reading: the order is by what was moved altogether.
  EXPECT_EQ(Run("top nodes -o name").out, "quiet\nvision\n");
}

TEST_F(TrafficTest, WatchHasNoRatesFirstAndThenATrend) {
  Read(1000, 1);
  between_ = {[&] { Read(6'000, 6); }, [&] { Read(11'000, 6); }};
  const Outcome outcome = Run("top namespaces --watch");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("vision     -   -    20 KiB    1.0 KiB\n"));
  EXPECT_THAT(outcome.out, HasSubstr("164 kbit/s  8.19 kbit/s  120 KiB   6.0 KiB  \u2588\n"));
  EXPECT_THAT(outcome.out, HasSubstr("81.9 kbit/s  4.1 kbit/s  120 KiB   6.0 KiB  \u2588\u2585\n"));
}

TEST_F(TrafficTest, TopOfAllThatLeavesTheClusterSaysSo) {
  Read(1000, 1);
  EXPECT_THAT(Run("top namespaces --class external").out,
              HasSubstr("All that leaves the cluster's networks, of 7 nodes"));
  EXPECT_THAT(server_.last_request(), HasSubstr("traffic_class: \"external\""));
  Refuse("GetTraffic", absl::NotFoundError("there is no traffic class \"intranet\""));
  const Outcome unknown = Run("top namespaces --class intranet");
  EXPECT_EQ(unknown.code, 4);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean internet?"));
}

TEST_F(TrafficTest, OptionsOfTrafficNeedWhose) {
  for (const char* options : {"--class bogus", "--bytes", "--over 5s", "--namespace vision",
                              "-n vision", "--team vision", "--pod vision/a", "--sort in"}) {
    const Outcome outcome = Run(std::string("top ") + options);
    EXPECT_EQ(outcome.code, 2) << options;
    EXPECT_EQ(outcome.out, "") << options;
    EXPECT_THAT(outcome.err, HasSubstr("is about traffic; say whose, such as: spokectl top "))
        << options;
  }
  EXPECT_EQ(Run("top budgets --bytes").code, 2);
  EXPECT_EQ(Run("top --limit 5").code, 0);
}

TEST_F(TrafficTest, TopOfNothingIsANote) {
  const Outcome outcome = Run("top teams");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("there are no teams with traffic"));
  EXPECT_EQ(Run("top cats").code, 2);
}

class VerifyTest : public CommandTest {
 protected:
  static void AddProbe(v1::VerifyPolicyResponse& to, const std::string& target, bool hub,
                       const std::string& outcome) {
    v1::PolicyProbe& probe = *to.add_probes();
    probe.set_target(target);
    probe.set_traffic_class(hub ? "hub" : "peer-spoke");
    probe.set_expected(hub);
    probe.set_reached(outcome == "reached" || outcome == "refused");
    probe.set_outcome(outcome);
    probe.set_took_us(1500);
  }
  // Returns a node that found the hub and a spoke so.
  void Answer(const std::string& node, const std::string& hub, const std::string& spoke) {
    Change([&](FakeState& state) {
      v1::VerifyPolicyResponse& answer = state.verified.emplace_back();
      answer.set_node(node);
      AddProbe(answer, "10.8.0.1:443", true, hub);
      AddProbe(answer, "10.32.0.1", false, spoke);
    });
  }
};

TEST_F(VerifyTest, AllAsExpectedIsZero) {
  Answer("n2", "refused", "unreachable");
  Answer("n1", "reached", "timed out");
  const Outcome outcome =
      Run("policy verify --node n1 --node n2 --hub 10.8.0.1:443 --spoke 10.32.0.1 --within 1s");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "TARGET        CLASS       EXPECTED  n1              n2\n"
            "10.8.0.1:443  hub         yes       reached 1.5 ms  refused 1.5 ms\n"
            "10.32.0.1     peer-spoke  no        timed out       unreachable\n"
            "\nall 4 probes are as expected\n");
  const std::string request = server_.last_request();
  EXPECT_THAT(request, HasSubstr("nodes: \"n1\" nodes: \"n2\""));
  EXPECT_THAT(request, HasSubstr("hub_targets: \"10.8.0.1:443\""));
  EXPECT_THAT(request, HasSubstr("spoke_targets: \"10.32.0.1\""));
  EXPECT_THAT(request, HasSubstr("timeout_ms: 1000"));
}

TEST_F(VerifyTest, ASpokeThatIsReachedIsOne) {
  Answer("n1", "reached", "refused");
  const Outcome outcome = Run("policy verify");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("!! refused 1.5 ms"));
  EXPECT_THAT(outcome.out, HasSubstr("1 of 2 probes are not as expected"));
}

TEST_F(VerifyTest, AHubThatIsNotReachedIsOne) {
  Answer("n1", "timed out", "timed out");
  EXPECT_EQ(Run("policy verify").code, 1);
  EXPECT_EQ(Run("policy verify -o json").code, 1);
}

TEST_F(VerifyTest, WhatNobodyTriedProvesNothing) {
  EXPECT_EQ(Run("policy verify").code, 1) << "no node at all";
  Answer("n1", "reached", "not tried");
  EXPECT_EQ(Run("policy verify").code, 1);
  Change([](FakeState& state) { state.verified.clear(); });
  Answer("n1", "reached", "timed out");
  Change([](FakeState& state) {
    v1::VerifyPolicyResponse& away = state.verified.emplace_back();
    away.set_node("n2");
    away.set_error("the agent of node n2 is not connected");
  });
  const Outcome outcome = Run("policy verify");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("n2: the agent of node n2 is not connected\n"));
  EXPECT_THAT(outcome.out, HasSubstr("1 node did not try"));
}

TEST_F(VerifyTest, JsonSaysTheVerdict) {
  Answer("n1", "reached", "timed out");
  const nlohmann::json value = Json("policy verify");
  EXPECT_EQ(value["as_expected"], true);
  EXPECT_EQ(value["nodes"][0]["probes"][1]["outcome"], "timed out");
  EXPECT_EQ(value["nodes"][0]["probes"][1]["as_expected"], true);
}

TEST_F(VerifyTest, AQuestionThatCannotBeAskedIsNoVerdict) {
  Refuse("VerifyPolicy", absl::InternalError("a fault"));
  EXPECT_EQ(Run("policy verify").code, 2);
  Refuse("VerifyPolicy", absl::NotFoundError("there is no node n9"));
  EXPECT_EQ(Run("policy verify --node n9").code, 4);
  EXPECT_EQ(Run("policy verify --within 0").code, 2);
}

}  // namespace
}  // namespace spoke::ctl
