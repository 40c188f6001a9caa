// BandwidthLimit and BandwidthBudget.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/budget/grant_belief.h"
#include "ipam-server/ledger/fleet_policy.h"
#include "ipam-server/policy/bundle_message.h"
#include "ipam-server/policy/kinds/bandwidth_budget.h"
#include "ipam-server/policy/object_text.h"
#include "ipam-server/policy/objects/bundle.h"
#include "ipam-server/policy/testing/kinds_for_test.h"
#include "lib/base/status.h"
#include "proto/spoke/v1/policy.pb.h"

namespace spoke::ipam {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

INSTANTIATE_TEST_SUITE_P(
    BandwidthLimit, RefusedSpecTest,
    testing::Values(
        Refused{"Nothing", "BandwidthLimit", "{}",
                "f:4: spec: limits nothing: write perPod or perNode, with ingress or egress"},
        Refused{"NoRate", "BandwidthLimit", "{perPod: {}}",
                "f:4: spec.perPod: says no rate: write ingress (towards the pod) or egress, or "
                "remove it"},
        Refused{"Unitless", "BandwidthLimit", "\n  perPod:\n    ingress: 100",
                "f:6: spec.perPod.ingress: \"100\" has no unit: write bits a second, such as "
                "100Mbit"},
        Refused{"Negative", "BandwidthLimit", "\n  perPod:\n    egress: -1Mbit",
                "f:6: spec.perPod.egress: must be from 1Mbit to 1Tbit, not \"-1Mbit\""},
        Refused{"Zero", "BandwidthLimit", "{perNode: {egress: 0Mbit}}",
                "f:4: spec.perNode.egress: must be from 1Mbit to 1Tbit, not \"0Mbit\""},
        Refused{"Overflow", "BandwidthLimit", "{perNode: {egress: 99999999999999999999Gbit}}",
                "f:4: spec.perNode.egress: must be from 1Mbit to 1Tbit, not "
                "\"99999999999999999999Gbit\""},
        Refused{"PodAboveNode", "BandwidthLimit",
                "\n  perPod:\n    ingress: 2Gbit\n  perNode:\n    ingress: 1500Mbit",
                "f:6: spec.perPod.ingress: 2Gbit for each pod is more than 1500Mbit for all of "
                "them on a node: lower it, or raise perNode.ingress"},
        Refused{"NodeWithNamespaces", "BandwidthLimit",
                "\n  namespaces: [a]\n  perNode:\n    ingress: 1Gbit",
                "f:6: spec.perNode: cannot be with namespaces: a node shares a total among all its "
                "pods, or among those of a team, and a pod is of one team only; make a Team of "
                "these namespaces, and name it in teams"},
        Refused{"NoNamespaces", "BandwidthLimit", "{namespaces: [], perPod: {ingress: 1Gbit}}",
                "f:4: spec.namespaces: an empty list selects nothing: remove it to select all "
                "pods"},
        Refused{"Mode", "BandwidthLimit", "{mode: Off, perPod: {ingress: 1Gbit}}",
                "f:4: spec.mode: must be Enforce or Shadow, not \"Off\""},
        Refused{"Group", "BandwidthLimit", "{destinationGroup: A, perPod: {ingress: 1Gbit}}",
                "f:4: spec.destinationGroup: a destination group: must be 1 to 63 of a-z, 0-9 and "
                "'-', with no '-' at either end, not \"A\""},
        Refused{"UnknownDirection", "BandwidthLimit", "{perPod: {ingres: 1Gbit}}",
                "f:4: spec.perPod.ingres: unknown key; did you mean \"ingress\"?"}),
    NameOfCase);

INSTANTIATE_TEST_SUITE_P(
    BandwidthBudget, RefusedSpecTest,
    testing::Values(
        Refused{"Nothing", "BandwidthBudget", "{}",
                "f:4: spec.direction: is required but missing\n"
                "f:4: spec.capacity: is required but missing"},
        Refused{"Direction", "BandwidthBudget", "{direction: ingress, capacity: 1Gbit}",
                "f:4: spec.direction: must be Ingress (towards the pods) or Egress, not "
                "\"ingress\""},
        Refused{"Unitless", "BandwidthBudget", "\n  direction: Egress\n  capacity: 40",
                "f:6: spec.capacity: \"40\" has no unit: write bits a second, such as 100Mbit"},
        Refused{"Absurd", "BandwidthBudget", "{direction: Egress, capacity: 40Tbit}",
                "f:4: spec.capacity: must be from 1Mbit to 1Tbit, not \"40Tbit\""},
        Refused{"MinAboveMax", "BandwidthBudget",
                "\n  direction: Egress\n  capacity: 1Gbit\n  teams:\n  - name: \"*\"\n    min: "
                "20Mbit\n    max: 10Mbit",
                "f:9: spec.teams[0].min: 20Mbit is more than max, 10Mbit: lower it, or raise max"},
        Refused{"MaxAboveGrantable", "BandwidthBudget",
                "\n  direction: Egress\n  capacity: 1Gbit\n  onLoss: {floor: {nodes: 100}}\n  "
                "teams:\n  - {name: \"*\", max: 951Mbit}",
                "f:9: spec.teams[0].max: 951Mbit is more than the 950Mbit that can be granted, "
                "which is the capacity without 50Mbit that is kept for nodes without a grant "
                "(onLoss.floor): lower it"},
        Refused{"MinAboveGrantableTogether", "BandwidthBudget",
                "\n  direction: Egress\n  capacity: 1Gbit\n  onLoss: {floor: {share: 10%, nodes: "
                "100}}\n  teams:\n  - {name: a, min: 500Mbit}\n  - {name: \"*\", min: 401Mbit}",
                "f:8: spec.teams: the min of all teams together, 901Mbit, is more than the 900Mbit "
                "that can be granted, which is the capacity without 100Mbit that is kept for nodes "
                "without a grant (onLoss.floor): lower some"},
        Refused{"TeamTwice", "BandwidthBudget",
                "\n  direction: Egress\n  capacity: 1Gbit\n  teams:\n  - {name: a}\n  - {name: b}\n"
                "  - {name: a, weight: 2}",
                "f:10: spec.teams[2].name: \"a\" is listed twice: line 8 has it already; remove "
                "one"},
        Refused{"NoWeight", "BandwidthBudget",
                "{direction: Egress, capacity: 1Gbit, teams: [{name: a, weight: 0}]}",
                "f:4: spec.teams[0].weight: must be a number from 0.001 up to 1000, not \"0\""},
        Refused{"NegativeWeight", "BandwidthBudget",
                "{direction: Egress, capacity: 1Gbit, teams: [{name: a, weight: -1}]}",
                "f:4: spec.teams[0].weight: must be a number from 0.001 up to 1000, not \"-1\""},
        Refused{"HugeWeight", "BandwidthBudget",
                "{direction: Egress, capacity: 1Gbit, teams: [{name: a, weight: 1001}]}",
                "f:4: spec.teams[0].weight: must be a number from 0.001 up to 1000, not \"1001\""},
        Refused{"NoTeams", "BandwidthBudget", "{direction: Egress, capacity: 1Gbit, teams: []}",
                "f:4: spec.teams: an empty list names no team: remove it to let all teams share "
                "alike"},
        Refused{"TeamWithoutName", "BandwidthBudget",
                "{direction: Egress, capacity: 1Gbit, teams: [{weight: 2}, a]}",
                "f:4: spec.teams[1]: must be a map, not a single value\n"
                "f:4: spec.teams[0].name: is required but missing"},
        Refused{"SlowRefresh", "BandwidthBudget",
                "{direction: Egress, capacity: 1Gbit,\n  grant: {duration: 8s}}",
                "f:5: spec.grant.refresh: 5s is more than half of the grant, 8s: a lost message "
                "would cost a node its grant; lower it, or raise duration"},
        Refused{"HastyRefresh", "BandwidthBudget",
                "{direction: Egress, capacity: 1Gbit, grant: {refresh: 900ms}}",
                "f:4: spec.grant.refresh: must be from 1s to 30m, not \"900ms\""},
        Refused{"LongGrant", "BandwidthBudget",
                "{direction: Egress, capacity: 1Gbit, grant: {duration: 61m}}",
                "f:4: spec.grant.duration: must be from 2s to 1h, not \"61m\""},
        Refused{"PartsOfMilliseconds", "BandwidthBudget",
                "{direction: Egress, capacity: 1Gbit, onLoss: {hold: 1000.5ms}}",
                "f:4: spec.onLoss.hold: must be whole milliseconds, not 1.0005s"},
        Refused{"LargeFloor", "BandwidthBudget",
                "{direction: Egress, capacity: 1Gbit, onLoss: {floor: {share: 10.001%}}}",
                "f:4: spec.onLoss.floor.share: must be from 0% to 10% with at most three decimals, "
                "such as 5%, not \"10.001%\""},
        Refused{"FloorWithoutPercent", "BandwidthBudget",
                "{direction: Egress, capacity: 1Gbit, onLoss: {floor: {share: 0.05}}}",
                "f:4: spec.onLoss.floor.share: must be from 0% to 10% with at most three decimals, "
                "such as 5%, not \"0.05\""},
        Refused{"FloorForNobody", "BandwidthBudget",
                "{direction: Egress, capacity: 1Gbit, onLoss: {floor: {nodes: 0}}}",
                "f:4: spec.onLoss.floor.nodes: must be a whole number from 1 to 1000000, not "
                "\"0\""},
        Refused{"NoConnections", "BandwidthBudget",
                "{direction: Egress, capacity: 1Gbit, connectionsPerSecond: 0}",
                "f:4: spec.connectionsPerSecond: must be a whole number from 1 to 10000000, not "
                "\"0\""}),
    NameOfCase);

// A team and a group, for others to name.
std::string Named() {
  return Document("Team", "vision", "{namespaces: [v]}") + "---\n" +
         Document("DestinationGroup", "datasets", "{cidrs: [192.0.2.0/24]}") + "---\n";
}

TEST(BandwidthLimit, GoesToNodesWhole) {
  const ObjectSet set = Applied(
      Named() + Document("BandwidthLimit", "x",
                         "{teams: [vision], destinationGroup: datasets, mode: Shadow, perPod: "
                         "{ingress: 100Mbit, egress: 50Mbit}, perNode: {ingress: 1Gbit, egress: "
                         "1.5Gbit}}"));
  const v1::PolicyEntry entry = EntryOf(set, {"BandwidthLimit", "x"});
  EXPECT_EQ(entry.key(), "BandwidthLimit/x");
  const v1::BandwidthLimitPolicy& limit = entry.bandwidth_limit();
  EXPECT_THAT(limit.namespaces(), IsEmpty());
  EXPECT_THAT(limit.teams(), ElementsAre("vision"));
  EXPECT_EQ(limit.destination_group(), "datasets");
  EXPECT_EQ(limit.pod_ingress(), 100'000'000U);
  EXPECT_EQ(limit.pod_egress(), 50'000'000U);
  EXPECT_EQ(limit.node_ingress(), 1'000'000'000U);
  EXPECT_EQ(limit.node_egress(), 1'500'000'000U);
  EXPECT_TRUE(limit.shadow());
}

TEST(BandwidthLimit, IsOfAllPodsAndTheInternetUnlessItSaysOtherwise) {
  const ObjectSet set = Applied(Document("BandwidthLimit", "x", "{perPod: {egress: 1Gbit}}"));
  EXPECT_EQ(set.Find({"BandwidthLimit", "x"})->spec->ToJson(),
            R"({"mode":"Enforce","perPod":{"egress":"1Gbit"}})");
  const v1::PolicyEntry entry = EntryOf(set, {"BandwidthLimit", "x"});
  v1::BandwidthLimitPolicy want;
  want.set_pod_egress(1'000'000'000);
  EXPECT_EQ(entry.bandwidth_limit().SerializeAsString(), want.SerializeAsString());
}

TEST(BandwidthLimit, NamesTeamsAndAGroupThatAreThere) {
  const auto plan = Plan({}, Document("BandwidthLimit", "x",
                                      "\n  teams:\n    - vision\n  destinationGroup: datasets\n  "
                                      "perPod: {egress: 1Gbit}"));
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(base::MessageOf(plan.status()),
            "f:6: spec.teams: there is no Team \"vision\": apply it before, or with this one\n"
            "f:7: spec.destinationGroup: there is no DestinationGroup \"datasets\": apply it "
            "before, or with this one");
}

constexpr const char* kWhole =
    "{destinationGroup: datasets, direction: Egress, capacity: 40Gbit, connectionsPerSecond: 500, "
    "teams: [{name: vision, weight: 3, min: 1Gbit, max: 20Gbit}, {name: \"*\", weight: 0.5}], "
    "borrow: false, grant: {duration: 60s, refresh: 2500ms}, onLoss: {hold: 10s, halfLife: 5s, "
    "floor: {share: 2.5%, nodes: 1000}}, mode: Shadow}";

TEST(BandwidthBudget, GivesTheServerWhatItSays) {
  const ObjectSet set = Applied(Named() + Document("BandwidthBudget", "host", kWhole));
  const BudgetSpec want{.name = "host",
                        .destination_group = "datasets",
                        .egress = true,
                        .capacity = units::BitRate(40'000'000'000),
                        .connections = 500,
                        .teams = {{.name = "*", .weight = 0.5},
                                  {.name = "vision",
                                   .weight = 3,
                                   .min = units::BitRate(1'000'000'000),
                                   .max = units::BitRate(20'000'000'000)}},
                        .borrow = false,
                        .grant = absl::Seconds(60),
                        .refresh = absl::Milliseconds(2500),
                        .hold = absl::Seconds(10),
                        .half_life = absl::Seconds(5),
                        .floor_part = 0.025,
                        .floor_nodes = 1000,
                        .shadow = true};
  EXPECT_THAT(BudgetsOf(set), ElementsAre(want));
  EXPECT_EQ(BudgetOf(*set.Find({"Team", "vision"})), nullptr);
}

// A server that takes over asks for what each node holds whose record it has.
TEST(BandwidthBudget, NoGrantOutlastsTheRecordOfAReplacedMachine) {
  const ObjectSet set = Applied(
      Named() + Document("BandwidthBudget", "host",
                         "{destinationGroup: datasets, direction: Egress, capacity: 40Gbit, "
                         "teams: [{name: vision}], grant: {duration: 1h, refresh: 30m}, onLoss: "
                         "{hold: 1h, halfLife: 10m, floor: {share: 2.5%, nodes: 1000}}}"));
  const std::vector<BudgetSpec> budgets = BudgetsOf(set);
  ASSERT_THAT(budgets, SizeIs(1)) << "these are the longest times there are";
  const BudgetSpec& budget = budgets[0];
  const absl::Duration held =
      budget.grant + budget.hold + static_cast<double>(kHalvings) * budget.half_life;
  EXPECT_LE(held * kClockMargin, FleetPolicy().replaced_stays);
}

TEST(BandwidthBudget, GivesNodesWhatGrantsNeed) {
  const ObjectSet set = Applied(Named() + Document("BandwidthBudget", "host", kWhole));
  const v1::PolicyEntry entry = EntryOf(set, {"BandwidthBudget", "host"});
  EXPECT_EQ(entry.key(), "BandwidthBudget/host");
  const v1::BandwidthBudgetPolicy& policy = entry.bandwidth_budget();
  EXPECT_EQ(policy.destination_group(), "datasets");
  EXPECT_TRUE(policy.egress());
  EXPECT_THAT(policy.teams(), ElementsAre("vision"));
  EXPECT_EQ(policy.floor(), 1'000'000U);
  EXPECT_EQ(policy.refresh_ms(), 2500U);
  EXPECT_EQ(policy.hold_ms(), 10'000U);
  EXPECT_EQ(policy.half_life_ms(), 5000U);
  EXPECT_TRUE(policy.shadow());
}

TEST(BandwidthBudget, HasDefaultsAndWritesThemDown) {
  const ObjectSet set =
      Applied(Document("BandwidthBudget", "x", "{direction: Ingress, capacity: 1.5Gbit}"));
  BudgetSpec want;
  want.name = "x";
  want.capacity = units::BitRate(1'500'000'000);
  want.teams = {{.name = "*"}};
  EXPECT_THAT(BudgetsOf(set), ElementsAre(want));
  EXPECT_EQ(set.Find({"BandwidthBudget", "x"})->spec->ToJson(),
            R"({"borrow":true,"capacity":"1500Mbit","direction":"Ingress",)"
            R"("grant":{"duration":"120s","refresh":"5s"},"mode":"Enforce",)"
            R"("onLoss":{"floor":{"nodes":8192,"share":"5%"},"halfLife":"30s","hold":"300s"},)"
            R"("teams":[{"name":"*","weight":1.0}]})");
}

TEST(BandwidthBudget, IsShownAsItWasApplied) {
  const ObjectSet set = Applied(Named() + Document("BandwidthBudget", "host", kWhole));
  const std::string shown = ObjectYaml(*set.Find({"BandwidthBudget", "host"}));
  EXPECT_THAT(shown, HasSubstr("  teams:\n    - name: \"*\"\n      weight: 0.5\n"
                               "    - max: \"20Gbit\"\n      min: \"1Gbit\"\n"));
  const auto again = Plan(set, shown);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->changes[0].action, ChangeAction::kUnchanged);
}

TEST(BandwidthBudget, TakesTheGrantUnderItsOldNameAndSaysSo) {
  const auto parsed = [](const std::string& spec) {
    return ParsePolicyFiles(
        std::vector<PolicyFileText>{{"f", Document("BandwidthBudget", "host", spec)}});
  };
  const ParsedFiles old =
      parsed("{direction: Egress, capacity: 1Gbit, lease: {duration: 60s, refresh: 5s}}");
  const ParsedFiles now =
      parsed("{direction: Egress, capacity: 1Gbit, grant: {duration: 60s, refresh: 5s}}");
  ASSERT_EQ(old.warnings.size(), 1U);
  EXPECT_EQ(TextOf(old.warnings[0]),
            "f:4: spec.lease: is called grant now: the old name is taken for one release more");
  EXPECT_THAT(now.warnings, testing::IsEmpty());
  ASSERT_TRUE(old.objects.at(0).spec != nullptr && now.objects.at(0).spec != nullptr);
  EXPECT_EQ(old.objects[0].spec->ToJson(), now.objects[0].spec->ToJson());
  const ParsedFiles both =
      parsed("{direction: Egress, capacity: 1Gbit, lease: {}, grant: {duration: 60s}}");
  ASSERT_EQ(both.problems.size(), 1U);
  EXPECT_EQ(TextOf(both.problems[0]),
            "f:4: spec.lease: is the old name of grant, which is there as well: remove it");
}

TEST(BandwidthBudget, KeepsEveryShareOfTheFloorAsItIsWritten) {
  for (int thousandths = 0; thousandths <= 10'000; thousandths += 7) {
    const std::string share = std::to_string(thousandths / 1000) + "." +
                              std::to_string(1000 + thousandths % 1000).substr(1);
    const ObjectSet set = Applied(
        Document("BandwidthBudget", "x",
                 "{direction: Egress, capacity: 1Gbit, onLoss: {floor: {share: " + share + "%}}}"));
    const auto object = set.Find({"BandwidthBudget", "x"});
    ASSERT_NE(object, nullptr) << share;
    const auto again = Plan(set, ObjectYaml(*object));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->changes[0].action, ChangeAction::kUnchanged) << share;
  }
}

TEST(BandwidthBudget, NamesTeamsAndAGroupThatAreThere) {
  const auto plan = Plan({}, Document("BandwidthBudget", "x",
                                      "\n  direction: Egress\n  capacity: 1Gbit\n  teams:\n  - "
                                      "{name: \"*\"}\n  - {name: vision}\n  destinationGroup: g"));
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(base::MessageOf(plan.status()),
            "f:9: spec.teams: there is no Team \"vision\": apply it before, or with this one\n"
            "f:10: spec.destinationGroup: there is no DestinationGroup \"g\": apply it before, or "
            "with this one");
}

TEST(BandwidthBudget, IsTheOnlyOneOfItsScopeAndDirection) {
  const std::string internet = "{direction: Ingress, capacity: 1Gbit}";
  const ObjectSet set = Applied(Named() + Document("BandwidthBudget", "a", internet) + "---\n" +
                                Document("BandwidthBudget", "b", kWhole));
  const auto before = Plan(set, Document("BandwidthBudget", "c", internet));
  EXPECT_EQ(before.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(base::MessageOf(before.status()),
            "f:4: spec.direction: \"Ingress of the Internet\" is the scope of BandwidthBudget "
            "\"a\" (applied before) already: remove it from one of them");
  const auto together =
      Plan({}, Named() + Document("BandwidthBudget", "c", kWhole) + "---\n" +
                   Document("BandwidthBudget", "d",
                            "\n  direction: Egress\n  capacity: 1Gbit\n  destinationGroup: "
                            "datasets"));
  EXPECT_EQ(together.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(base::MessageOf(together.status()),
            "f:22: spec.destinationGroup: \"Egress of destination group datasets\" is the scope "
            "of BandwidthBudget \"c\" (f:14) already: remove it from one of them");
  for (const char* other : {"{direction: Egress, capacity: 1Gbit}",
                            "{direction: Ingress, capacity: 1Gbit, destinationGroup: datasets}"}) {
    const auto plan = Plan(set, Document("BandwidthBudget", "c", other));
    EXPECT_TRUE(plan.ok()) << plan.status();
  }
}

TEST(ShapingKinds, AreInTheBundleOfEveryNode) {
  const ObjectSet set =
      Applied(Named() + Document("BandwidthLimit", "l", "{perPod: {ingress: 100Mbit}}") + "---\n" +
              Document("BandwidthBudget", "b", kWhole));
  const v1::PolicyBundle bundle = ToMessage(DeltaFrom(nullptr, CompileBundle(set, {})));
  ASSERT_EQ(bundle.changed_size(), 4);
  EXPECT_EQ(bundle.changed(0).key(), "BandwidthBudget/b");
  EXPECT_EQ(bundle.changed(0).bandwidth_budget().floor(), 1'000'000U);
  EXPECT_EQ(bundle.changed(1).key(), "BandwidthLimit/l");
  EXPECT_EQ(bundle.changed(1).bandwidth_limit().pod_ingress(), 100'000'000U);
}

}  // namespace
}  // namespace spoke::ipam
