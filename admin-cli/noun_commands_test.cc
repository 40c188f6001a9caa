// Tests of pool, node, ip and reserve: each verb as a table, as JSON, and refused.
#include "admin-cli/testing/command_fixture.h"

namespace spoke::ctl {
namespace {

using testing::HasSubstr;
using testing::Not;

class NounTest : public CommandTest {
 protected:
  NounTest() { Change(FillCluster); }
};

TEST_F(NounTest, PoolListHasMoreColumnsWhenWide) {
  EXPECT_THAT(Run("pool list").out, HasSubstr("default  10.1.0.0/24  251"));
  EXPECT_THAT(Run("pool list").out, Not(HasSubstr("SOURCE")));
  EXPECT_THAT(Run("pool list -o wide").out, HasSubstr("SOURCE"));
  EXPECT_EQ(Json("pool list")[0]["free"], 235);
  EXPECT_EQ(Run("pool list -o name").out, "default\n");
  EXPECT_THAT(Run("pool list --no-headers").out, Not(HasSubstr("NAME")));
}

TEST_F(NounTest, PoolShowSaysWhereItComesFrom) {
  EXPECT_THAT(Run("pool show default").out, HasSubstr("the server's configuration"));
  EXPECT_EQ(Json("pool show default")["cidr"], "10.1.0.0/24");
  EXPECT_EQ(Run("pool show other").code, 4);
}

TEST_F(NounTest, PoolCreateMakesANewOneAndNeverChangesAnOldOne) {
  const Outcome created =
      Run("pool create gpu --cidr 10.3.0.0/16 --vnet v2 --node-label accelerator=h100 --namespace "
          "train");
  EXPECT_EQ(created.out, "Pool/gpu created\n") << created.err;
  Change([](FakeState& state) {
    const std::string& yaml = state.objects[{"Pool", "gpu"}];
    EXPECT_THAT(yaml, HasSubstr("  cidr: \"10.3.0.0/16\"\n  vnet: \"v2\"\n"));
    EXPECT_THAT(yaml, HasSubstr("    \"accelerator\": \"h100\"\n"));
    EXPECT_THAT(yaml, HasSubstr("    - \"train\"\n"));
  });
  const Outcome again = Run("pool create gpu --cidr 10.4.0.0/16");
  EXPECT_EQ(again.code, 5);
  EXPECT_THAT(again.err, HasSubstr("there is a pool gpu already"));
  Change([](FakeState& state) {
    EXPECT_THAT((state.objects[{"Pool", "gpu"}]), HasSubstr("10.3.0.0/16"));
  });
}

TEST_F(NounTest, PoolCreateDryRunChangesNothing) {
  EXPECT_EQ(Run("pool create gpu --cidr 10.3.0.0/16 --dry-run").out,
            "Pool/gpu created (dry run)\n");
  Change([](FakeState& state) { EXPECT_TRUE(state.objects.empty()); });
  EXPECT_EQ(Json("pool create gpu --cidr 10.3.0.0/16 --dry-run")[0]["dry_run"], true);
}

TEST_F(NounTest, PoolResizeChangesTheBlockAndNothingElse) {
  ASSERT_EQ(Run("pool create gpu --cidr 10.3.0.0/16 --vnet v2").code, 0);
  EXPECT_EQ(Run("pool resize gpu --cidr 10.2.0.0/15").out, "Pool/gpu changed\n");
  Change([](FakeState& state) {
    EXPECT_THAT((state.objects[{"Pool", "gpu"}]),
                HasSubstr("  cidr: \"10.2.0.0/15\"\n  vnet: \"v2\"\n"));
  });
  const Outcome none = Run("pool resize default --cidr 10.2.0.0/15");
  EXPECT_EQ(none.code, 4);
  EXPECT_THAT(none.err, HasSubstr("the server's configuration"));
  Refuse("Apply", absl::FailedPreconditionError("10.3.0.9 is in use and not in 10.3.0.0/29"));
  EXPECT_EQ(Run("pool resize gpu --cidr 10.3.0.0/29").code, 5);
}

TEST_F(NounTest, PoolDeleteDeletesOnlyWhatIsThere) {
  ASSERT_EQ(Run("pool create gpu --cidr 10.3.0.0/16").code, 0);
  EXPECT_EQ(Run("pool delete gpu --dry-run").out, "Pool/gpu deleted (dry run)\n");
  EXPECT_EQ(Run("pool delete gpu -o name").out, "Pool/gpu\n");
  EXPECT_EQ(Run("pool delete gpu").code, 4);
}

TEST_F(NounTest, NodeListPutsTheMessagesOfTheStreamTogether) {
  const Outcome outcome = Run("node list");
  EXPECT_THAT(outcome.out, HasSubstr("node1  connected  active"));
  EXPECT_THAT(outcome.out, HasSubstr("node2  away       draining"));
  EXPECT_THAT(outcome.out, HasSubstr("pool default is exhausted"));
  const nlohmann::json nodes = Json("node list");
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(nodes[0]["connected"], true);
  EXPECT_EQ(nodes[0]["last_seen"], "2023-11-14T22:13:20Z");
  EXPECT_THAT(Run("node list -o wide").out, HasSubstr("zone=1"));
  EXPECT_THAT(Run("node list -o wide").out, HasSubstr("node1  vm-1  connected  active"));
  EXPECT_EQ(Run("node list -o name").out, "node1\nnode2\n");
  EXPECT_EQ(Run("node ls -o name").out, "node1\nnode2\n");
}

TEST_F(NounTest, WhatChecksFindIsShownWithItsRemedy) {
  Change([](FakeState& state) {
    v1::NodeFinding& blocking = *state.nodes["node1"].add_findings();
    blocking.set_check("forwarding");
    blocking.set_blocking(true);
    blocking.set_object("net.ipv4.ip_forward");
    blocking.set_what("is 0");
    blocking.set_remedy("sysctl -w net.ipv4.ip_forward=1");
    state.nodes["node1"].add_findings()->set_check("mtu");
  });
  EXPECT_THAT(Run("node list").out, HasSubstr("node1  blocked  active"));
  EXPECT_THAT(Run("node list -o wide").out, HasSubstr("forwarding,mtu"));
  EXPECT_THAT(Run("node show node1").out,
              HasSubstr("blocking: forwarding: net.ipv4.ip_forward is 0. Remedy: sysctl -w"));
  const nlohmann::json findings = Json("node show node1")["findings"];
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0]["blocking"], true);
  EXPECT_EQ(findings[0]["remedy"], "sysctl -w net.ipv4.ip_forward=1");
  EXPECT_EQ(Json("node list")[1]["findings"].size(), 0U);
}

TEST_F(NounTest, NodesAreSelectedByTheirLabels) {
  Change([](FakeState& state) {
    (*state.nodes["node1"].mutable_labels())["gpu"] = "h100";
    (*state.nodes["node2"].mutable_labels())["zone"] = "1";
  });
  EXPECT_EQ(Run("node list -l zone=1 -o name").out, "node1\nnode2\n");
  EXPECT_EQ(Run("node list --selector zone=1,gpu=h100 -o name").out, "node1\n");
  EXPECT_EQ(Run("node list -l zone=1 -l gpu=h100 -o name").out, "node1\n");
  EXPECT_EQ(Json("node list -l zone=3").size(), 0U);
  EXPECT_EQ(Run("node list -l zone=1,gpu -o name").out, "node1\n");
  EXPECT_EQ(Run("node list -l zone=1,!gpu -o name").out, "node2\n");
  EXPECT_EQ(Run("node list -l gpu!=h100 -o name").out, "node2\n");
  EXPECT_EQ(RunWords({"node", "list", "-o", "name", "-l", "gpu in (a100, h100)"}).out, "node1\n");
  for (const char* wrong : {"a=b=c", "=1", "zone>1", "zone=1,"}) {
    const Outcome outcome = Run(std::string("node list -l ") + wrong);
    EXPECT_EQ(outcome.code, 2) << wrong;
    EXPECT_THAT(outcome.err, HasSubstr("node list: --selector: \"")) << wrong;
  }
}

TEST_F(NounTest, ListsAreSortedByAKeyOfTheirJson) {
  EXPECT_EQ(Run("node list --sort-by in_use -o name").out, "node2\nnode1\n");
  EXPECT_EQ(Run("node list --sort-by .in_use:desc -o name").out, "node1\nnode2\n");
  EXPECT_EQ(Json("node list --sort-by in_use")[0]["name"], "node2");
  const std::string table = Run("node list --sort-by in_use").out;
  EXPECT_LT(table.find("node2"), table.find("node1"));
  const Outcome unknown = Run("node list --sort-by used");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_EQ(unknown.out, "");
  EXPECT_THAT(unknown.err, HasSubstr("there is no key \"used\", but: name, vm_id"));
  EXPECT_EQ(Run("node list --sort-by in_use:down").code, 2);
}

TEST_F(NounTest, TitlesOfColumnsAreKeysToo) {
  EXPECT_EQ(Run("node list --sort-by in-use -o name").out, "node2\nnode1\n");
  EXPECT_EQ(Run("node list --sort-by IN-USE:desc -o name").out, "node1\nnode2\n");
  Change([](FakeState& state) { state.nodes["node2"].set_last_seen_unix_ms(1); });
  EXPECT_EQ(Run("node list -o wide --sort-by seen").code, 0);
  EXPECT_EQ(Run("node list --sort-by agent:desc -o name").out, "node1\nnode2\n");
  EXPECT_THAT(Run("node list --sort-by in_us").err, HasSubstr("; did you mean in_use?"));
}

TEST_F(NounTest, NothingIsPrintedBeforeAWrongKeyToSortBy) {
  const Outcome outcome = Run("node show node1 --sort-by nonsense");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("there is no key \"nonsense\""));
}

// Names, ids and texts as long as those of Azure.
void FillLong(FakeState& state) {
  const std::string name = "aks-gpupool1-12345678-vmss00000a";
  v1::NodeInfo& node = state.nodes[name];
  node = state.nodes["node1"];
  node.set_name(name);
  node.set_vm_id("8f2c1c5e-7d0b-4c0a-9a55-1d0f6a5b7c3e");
  node.set_target(250);
  node.set_attached(240);
  node.set_in_use(200);
  node.set_cloud_eta_unix_ms(1'700'003'000'000);
  std::string shortage = "has 240 of 250 addresses";
  while (shortage.size() < 650) shortage += "; pool default: 8 addresses in cooldown, 0 free";
  node.set_shortage(shortage);
  v1::AddressInfo& address = state.addresses["10.241.113.207"];
  address = state.addresses["10.1.0.5"];
  address.set_address("10.241.113.207");
  address.set_node(name);
  address.set_pod_namespace("vision");
  address.set_pod_name("trainer-7d4b9c5f6-x2x7q");
  for (const char* what : {"apply", "delete"}) {
    v1::OperatorRecord& record = *state.operator_log.add_records();
    record.set_unix_ms(1'700'000'000'000);
    record.set_who("alice");
    record.set_from("10.241.0.17");
    record.set_method("Apply");
    record.set_policy_after(1'789'034'112'345);
    record.set_policy_before(1'789'034'112'344);
    record.set_what(std::string(what) + " " + std::string(300, 'x'));
  }
}

TEST_F(NounTest, TablesFitAHundredColumnsAndNothingElseIsCut) {
  Change(FillLong);
  for (const char* line : {"node list", "node show aks-gpupool1-12345678-vmss00000a", "ip list",
                           "policy history", "audit-log"}) {
    for (const absl::string_view text : absl::StrSplit(Run(line).out, '\n')) {
      EXPECT_LE(text.size(), 100U) << line << ": " << text;
    }
  }
  EXPECT_THAT(Run("node list").out, testing::ContainsRegex("has 240 of.*[.][.][.]\n"));
  EXPECT_THAT(Run("node list").out, Not(HasSubstr("8f2c1c5e")));
  EXPECT_THAT(Run("audit-log").out, HasSubstr("xxx...\n"));
  for (const char* line : {"node list -o wide", "node list -o json"}) {
    EXPECT_THAT(Run(line).out, HasSubstr("8f2c1c5e"));
    EXPECT_THAT(Run(line).out, HasSubstr("in cooldown, 0 free; pool default: 8 addresses"));
  }
  EXPECT_THAT(Run("audit-log -o wide").out, HasSubstr(std::string(300, 'x')));
}

TEST_F(NounTest, ANodeSaysHowManyOfItsAddressesNoPodGets) {
  EXPECT_THAT(Run("node show node1").out, Not(HasSubstr("Withheld")));
  Change([](FakeState& state) { state.nodes["node1"].set_withheld(3); });
  EXPECT_THAT(Run("node show node1").out, HasSubstr("3 of the attached are in quarantine"));
  EXPECT_THAT(Run("node show node1 -o json").out, HasSubstr("\"withheld\": 3"));
}

TEST_F(NounTest, NounsAreKnownByTheirPluralsToo) {
  EXPECT_EQ(Run("nodes list -o name").out, "node1\nnode2\n");
  EXPECT_EQ(Run("pools ls -o name").out, "default\n");
  EXPECT_EQ(Run("ips list").code, 0);
  EXPECT_EQ(Run("budgets list").code, 0);
  EXPECT_EQ(Run("reserves list").code, 2) << "that is a verb";
}

TEST_F(NounTest, AnEmptyListIsANoteAndStillAList) {
  EXPECT_EQ(Run("node list -l no=such").err, "spokectl: there are no nodes with such labels\n");
  Change([](FakeState& state) { state.nodes.clear(); });
  const Outcome outcome = Run("node list");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, "spokectl: there are no nodes\n");
  EXPECT_EQ(Run("node list -o json").out, "[]\n");
  EXPECT_EQ(Run("node list -o yaml").out, "[]\n");
}

TEST_F(NounTest, NodeShowHasTheAddressesToo) {
  const Outcome outcome = Run("node show node1");
  EXPECT_THAT(outcome.out, HasSubstr("Agent:      connected (version unknown, last seen 10m ago)"));
  EXPECT_THAT(outcome.out, HasSubstr("10.1.0.5  in_use"));
  EXPECT_EQ(Json("node show node1")["addresses"].size(), 2U);
  const Outcome none = Run("node show node9");
  EXPECT_EQ(none.code, 4);
  EXPECT_EQ(none.err,
            "spokectl: there is no node node9; see: spokectl node list; did you mean node1?\n");
}

TEST_F(NounTest, ANodeIsForgottenWithItsNumbers) {
  Refuse("ForgetNode", absl::FailedPreconditionError("pods of node node1 used 3 addresses"));
  const Outcome refused = Run("node forget node1");
  EXPECT_EQ(refused.code, 5);
  EXPECT_THAT(refused.err, HasSubstr("used 3 addresses"));
  Refuse("ForgetNode", absl::OkStatus());
  EXPECT_EQ(Run("node forget node9").code, 4);
  EXPECT_EQ(Run("node forget node1 --in-use many").code, 2);
  EXPECT_THAT(Run("node forget node1 --vm vm-1 --in-use 3").out,
              HasSubstr("node node1 (VM vm-1) is forgotten"));
  EXPECT_EQ(Run("node show node1").code, 4);
  EXPECT_EQ(Json("node forget node2")["name"], "node2");
}

TEST_F(NounTest, NodesAreTriedAgain) {
  EXPECT_EQ(Run("node retry node1").out, "node node1 is tried again\n");
  EXPECT_EQ(Run("node retry node1 node9").code, 4);
  EXPECT_EQ(Json("node retry node1")[0]["name"], "node1");
}

TEST_F(NounTest, ModesAreSetAndLifted) {
  const auto mode = [&] { return Json("node show node1")["mode"]; };
  EXPECT_EQ(Run("node drain node1").out, "node node1 is draining\n");
  EXPECT_EQ(mode(), "draining");
  EXPECT_EQ(Run("node undrain node1").code, 0);
  EXPECT_EQ(mode(), "active");
  EXPECT_EQ(Run("node freeze node1").out, "node node1 is frozen\n");
  EXPECT_EQ(mode(), "frozen");
  EXPECT_EQ(Run("node unfreeze node1").code, 0);
  EXPECT_EQ(mode(), "active");
  EXPECT_EQ(Json("node drain node1 node2").size(), 2U);
}

TEST_F(NounTest, OneUnknownNodeDoesNotKeepTheOthersFromDraining) {
  const Outcome outcome = Run("node drain node9 node1");
  EXPECT_EQ(outcome.code, 4);
  EXPECT_EQ(outcome.out, "node node1 is draining\n");
  EXPECT_THAT(outcome.err, HasSubstr("there is no node node9"));
  // The name is there once, not once for each place that knows of it.
  EXPECT_EQ(outcome.err.find("node9"), outcome.err.rfind("node9"));
}

TEST_F(NounTest, IpListFiltersOnTheServer) {
  EXPECT_THAT(Run("ip list").out, HasSubstr("10.1.0.5  in_use     node1  ns/pod  10m\n"));
  EXPECT_THAT(Run("ip list -o wide").out,
              HasSubstr("10.1.0.5  in_use     default  node1  ns/pod  c0ffeec0ffee  10m"));
  EXPECT_EQ(Json("ip list --state available").size(), 1U);
  EXPECT_EQ(server_.last_request(), "ListAddresses state: \"available\"");
  EXPECT_EQ(Run("ip list --node node2").err, "spokectl: there are no such addresses\n");
  const Outcome wrong = Run("ip list --state assigned");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err,
              HasSubstr("--state: \"assigned\" is none of attaching, available, in_use"));
}

TEST_F(NounTest, IpListFiltersByPodNamespaceAndTeam) {
  Change([](FakeState& state) {
    state.objects[{"Team", "vision"}] = "kind: Team";
    state.specs[{"Team", "vision"}] = R"({"namespaces": ["ns", "other"]})";
  });
  const auto names = [&](const std::string& filter) {
    return Run("ip list -o name " + filter).out;
  };
  EXPECT_EQ(names("--namespace ns"), "10.1.0.5\n");
  EXPECT_EQ(names("--pod pod"), "10.1.0.5\n");
  EXPECT_EQ(names("--pod ns/pod"), "10.1.0.5\n");
  EXPECT_EQ(names("--team vision"), "10.1.0.5\n");
  EXPECT_EQ(names("--team vision --namespace ns --node node1"), "10.1.0.5\n");
  EXPECT_EQ(names("--namespace other"), "");
  EXPECT_EQ(names("--pod other/pod"), "");
  EXPECT_EQ(names("--team vision --namespace third"), "");
  EXPECT_EQ(names("-n ns"), "10.1.0.5\n");
  EXPECT_EQ(Run("ip list --pod ns/pod --node node2").err,
            "spokectl: there are no addresses of such pods\n");
  EXPECT_EQ(Run("ip list --pod ns/pod --namespace other").code, 2);
  EXPECT_EQ(Run("ip list --team visoin").code, 4);
}

TEST_F(NounTest, PodsAndNamespacesThatAreNoneAreNamed) {
  Change([](FakeState& state) {
    state.addresses["10.1.0.6"].set_pod_namespace("demo");
    state.addresses["10.1.0.6"].set_pod_name("frontend-7d4b9");
  });
  for (const char* wrong : {"ip list --pod bad/a/b", "ip list --pod /x", "ip list --pod x/",
                            "events --pod a/b/c", "top pods --pod /x"}) {
    const Outcome outcome = Run(wrong);
    EXPECT_EQ(outcome.code, 2) << wrong;
    EXPECT_THAT(outcome.err, HasSubstr("is neither NAME nor NAMESPACE/NAME")) << wrong;
  }
  const auto error = [&](const std::string& line) {
    const Outcome outcome = Run(line);
    EXPECT_EQ(outcome.code, 4) << line;
    EXPECT_EQ(outcome.out, "") << line;
    return outcome.err;
  };
  EXPECT_EQ(error("ip list --namespace nope"),
            "spokectl: no pod of namespace nope has an address\n");
  EXPECT_THAT(error("ip list -n demmo"), HasSubstr("; did you mean namespace demo?"));
  EXPECT_THAT(error("ip list --pod demo/frontend"),
              HasSubstr("no pod demo/frontend has an address; did you mean demo/frontend-7d4b9?"));
  EXPECT_THAT(error("ip list --pod pox -o json"), HasSubstr("; did you mean pod?"));
  EXPECT_THAT(error("top pods --namespace nope"), HasSubstr("no pod of namespace nope"));
  EXPECT_EQ(Run("top nodes --namespace ns").code, 2);
  EXPECT_EQ(Run("top namespaces --pod ns/pod").code, 2);
}

TEST_F(NounTest, WhoeverMistypesANameIsToldTheNearest) {
  Change([](FakeState& state) { state.objects[{"Team", "vision"}] = "kind: Team"; });
  EXPECT_THAT(Run("get team/visoin").err, HasSubstr("did you mean Team/vision?"));
  EXPECT_THAT(Run("get team visoin").err, HasSubstr("did you mean vision?"));
  EXPECT_THAT(Run("pool show defualt").err, HasSubstr("did you mean default?"));
  EXPECT_THAT(Run("node show Node2").err, HasSubstr("did you mean node2?"));
  EXPECT_THAT(Run("node show frankfurt").err, Not(HasSubstr("did you mean")));
  EXPECT_EQ(Run("events --node nod1").code, 4);
  EXPECT_THAT(Run("explain pod ns/pod --node nod1").err, HasSubstr("did you mean node1?"));
  EXPECT_EQ(Run("explain pod ns/pod --node nod1").code, 4);
  Refuse("Explain", absl::NotFoundError("there is no node nod1: is its agent running?"));
  EXPECT_THAT(Run("explain node nod1").err, HasSubstr("running? Did you mean node1?"));
  // What is there is not meant otherwise.
  EXPECT_THAT(Run("node drain node1 node3").err, HasSubstr("did you mean node1?"));
  const Outcome listed = Run("ip list --node nope");
  EXPECT_EQ(listed.code, 4);
  EXPECT_THAT(listed.err, HasSubstr("there is no node nope"));
  EXPECT_THAT(Run("ip list --pool defaul").err, HasSubstr("did you mean default?"));
}

TEST_F(NounTest, IpShowLeavesOutWhatIsEmpty) {
  const Outcome outcome = Run("ip show 10.1.0.5");
  EXPECT_THAT(outcome.out, HasSubstr("Since:      10m ago\n"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("NIC")));
  EXPECT_EQ(Json("ip show 10.1.0.5")["pod_name"], "pod");
  EXPECT_EQ(Run("ip show 192.0.2.1").code, 4);
}

TEST_F(NounTest, IpHistoryAnswersWhoHeldItAtATime) {
  Change([](FakeState& state) {
    state.history.set_kept_since_unix_ms(1'690'000'000'000);
    v1::HistoryEntry& entry = *state.history.add_entries();
    entry.set_unix_ms(1'699'999'000'000);
    entry.set_until_unix_ms(1'699'999'900'000);
    entry.set_event("in_use");
    entry.set_node("node1");
    entry.set_pod_namespace("ns");
    entry.set_pod_name("before");
  });
  EXPECT_THAT(Run("ip history 10.1.0.5").out,
              HasSubstr("2023-11-14T21:56:40Z  in_use  2023-11-14T22:11:40Z  node1  ns/before"));
  EXPECT_EQ(Json("ip history 10.1.0.5 --at 2023-11-14T22:00:00Z")["entries"].size(), 1U);
  EXPECT_THAT(server_.last_request(), HasSubstr("at_unix_ms: 1699999200000"));
  EXPECT_EQ(Json("ip history 10.1.0.5 --at 1m")["entries"].size(), 0U);
  EXPECT_EQ(Run("ip history 10.1.0.5 --at yesterday").code, 2);
}

TEST_F(NounTest, IpHistorySaysWhenItCannotReachBackThatFar) {
  Change([](FakeState& state) { state.history.set_kept_since_unix_ms(1'690'000'000'000); });
  const Outcome outcome = Run("ip history 10.1.0.5 --at 2020-01-01T00:00:00Z");
  EXPECT_THAT(outcome.err, HasSubstr("nothing older than 2023-07-22T04:26:40Z is kept"));
}

TEST_F(NounTest, IpReleaseAsksForIdleOnesOnly) {
  EXPECT_THAT(Run("ip release 10.1.0.6 --node node1").out, HasSubstr("10.1.0.6 is detaching"));
  EXPECT_THAT(server_.last_request(), HasSubstr("node: \"node1\""));
  EXPECT_EQ(Json("ip release 10.1.0.6")["state"], "detaching");
  const Outcome in_use = Run("ip release 10.1.0.5");
  EXPECT_EQ(in_use.code, 5);
  EXPECT_EQ(in_use.err, "spokectl: 10.1.0.5 is assigned to ns/pod; delete the pod first\n");
}

TEST_F(NounTest, QuarantineNeedsAReasonUnlessItIsLifted) {
  EXPECT_EQ(Run("ip quarantine 10.1.0.6").code, 2);
  EXPECT_EQ(Run("ip quarantine 10.1.0.6 --reason conflict").out,
            "10.1.0.6 is quarantined, and will not be used\n");
  EXPECT_THAT(Run("ip quarantine 10.1.0.5 --reason conflict").out,
              HasSubstr(": pod ns/pod keeps it until it ends, and no other gets it"));
  EXPECT_EQ(Json("ip show 10.1.0.6")["note"], "conflict");
  EXPECT_EQ(Run("ip quarantine 10.1.0.6 --lift").out, "10.1.0.6 is free, out of quarantine\n");
  EXPECT_EQ(Json("ip quarantine 10.1.0.6 --lift")["state"], "free");
}

TEST_F(NounTest, ReservationsAreMadeListedAndReleased) {
  const Outcome made = Run("reserve create job --node node1 --node node2 --addresses-per-node 8");
  EXPECT_EQ(made.out, "reservation job holds 8 addresses on each of 2 nodes for 50m\n");
  EXPECT_THAT(Run("reserve list").out, HasSubstr("job   2      8     0      10m  50m\n"));
  EXPECT_EQ(Json("reserve list")[0]["nodes"][1], "node2");
  EXPECT_EQ(Run("reserve list --node node2 -o name").out, "job\n");
  EXPECT_EQ(Run("reserve list --node node3").err,
            "spokectl: there are no reservations for node node3\n");
  EXPECT_EQ(Run("reserve create job --count 4 --addresses-per-node 8").code, 5);
  EXPECT_EQ(Run("reserve release job").out, "reservation job released\n");
  EXPECT_EQ(Run("reserve release job").code, 4);
  EXPECT_EQ(Run("reserve list").err, "spokectl: there are no reservations\n");
}

TEST_F(NounTest, AJobsHostsComeInTheOrderOfItsRanks) {
  EXPECT_EQ(Run("reserve hosts job").code, 4);
  Change([](FakeState& state) {
    v1::ReservationInfo& job = state.reservations["job"];
    job.set_name("job");
    for (const char* node : {"node1", "node2"}) {
      job.add_nodes(node);
      state.nodes[node].set_name(node);
    }
    job.add_nodes("still-to-join");
    state.reservations["wide"].set_name("wide");
    state.addresses.clear();
    const auto pod = [&](const std::string& address, const std::string& node,
                         const std::string& name, const std::string& pod_namespace) {
      v1::AddressInfo& info = state.addresses[address];
      info.set_address(address);
      info.set_state("in_use");
      info.set_node(node);
      info.set_pod_namespace(pod_namespace);
      info.set_pod_name(name);
      info.set_container_id("sandbox of " + name);
      info.set_ifname("eth0");
    };
    pod("10.1.0.9", "node1", "train-1", "jobs");
    pod("fd00::9", "node1", "train-1", "jobs");
    pod("10.1.0.7", "node2", "train-0", "jobs");
    pod("10.1.0.8", "node2", "dns", "kube-system");
    pod("10.1.0.5", "node3", "train-2", "jobs");
  });
  EXPECT_EQ(Run("reserve hosts job --namespace jobs").out, "10.1.0.7\n10.1.0.9\n");
  EXPECT_EQ(Run("reserve hosts job --namespace jobs --slots 8 --pods 2").out,
            "10.1.0.7 slots=8\n10.1.0.9 slots=8\n");
  EXPECT_EQ(Run("reserve hosts job").out, "10.1.0.9\n10.1.0.7\n10.1.0.8\n") << "by node";
  EXPECT_EQ(Run("reserve hosts job --namespace jobs --ipv6").out, "10.1.0.7\nfd00::9\n");
  const nlohmann::ordered_json json = Json("reserve hosts job --namespace jobs");
  EXPECT_EQ(json[1]["rank"], 1);
  EXPECT_EQ(json[1]["pod_name"], "train-1");
  const Outcome early = Run("reserve hosts job --namespace jobs --pods 4");
  EXPECT_EQ(early.code, 5);
  EXPECT_EQ(early.out, "") << "half a hostfile is none";
  EXPECT_THAT(early.err, HasSubstr("2 pods have an address there, not 4"));
  EXPECT_EQ(Run("reserve hosts wide").code, 2) << "all pods of the cluster are no job";
  EXPECT_EQ(Run("reserve hosts wide --namespace jobs").out, "10.1.0.7\n10.1.0.9\n10.1.0.5\n");
}

TEST_F(NounTest, AReservationIsForNodesOrForACount) {
  EXPECT_EQ(Run("reserve create job --addresses-per-node 8").code, 2);
  EXPECT_EQ(Run("reserve create job --node n --count 2 --addresses-per-node 8").code, 2);
  const Outcome trial = Run("reserve create job --count 4 --addresses-per-node 8 --dry-run");
  EXPECT_EQ(trial.out, "reservation job would hold 8 addresses on each of 4 nodes (dry run)\n");
  Change([](FakeState& state) { EXPECT_TRUE(state.reservations.empty()); });
  Refuse("CreateReservation", absl::ResourceExhaustedError("24 addresses are missing in default"));
  EXPECT_EQ(Run("reserve create job --count 4 --addresses-per-node 8").code, 5);
}

}  // namespace
}  // namespace spoke::ctl
