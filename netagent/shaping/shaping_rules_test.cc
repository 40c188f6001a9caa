#include "netagent/shaping/shaping_rules.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/policy/testing/blocks.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

constexpr units::BitRate kMbit{1'000'000};
constexpr auto kIngress = TrafficDirection::kIngress;
constexpr auto kEgress = TrafficDirection::kEgress;
constexpr ClassNumber kMirror = 16;
constexpr ClassNumber kData = 17;
const std::map<std::string, ClassNumber> kGroups = {{"data", kData}, {"mirror", kMirror}};
const RateLimit kNone;

template <typename T>
void Put(Policy& policy, const std::string& key, T value) {
  policy.entries[key] = {.key = key, .bytes = {}, .value = std::move(value)};
}

Policy Base() {
  Policy policy{.version = 1};
  Put(policy, "Team/vision", policy::Team{.namespaces = {"vision-train", "vision-data"}});
  Put(policy, "Team/speech", policy::Team{.namespaces = {"speech"}});
  Put(policy, "DestinationGroup/mirror",
      policy::DestinationGroup{.cidrs = policy::Blocks({"151.101.0.0/16"}),
                               .names = {"mirror.example.org"}});
  Put(policy, "DestinationGroup/data",
      policy::DestinationGroup{.names = {"*.data.example.org", "data.example.net"}});
  return policy;
}

policy::BandwidthBudget BudgetOf(std::vector<std::string> teams, std::string group = "") {
  return {.destination_group = std::move(group),
          .teams = std::move(teams),
          .floor = kMbit,
          .refresh = absl::Seconds(5),
          .hold = absl::Seconds(300),
          .half_life = absl::Seconds(30)};
}

ShapingRules Resolved(const Policy& policy) {
  auto rules = ShapingRules::Resolve(policy, kGroups);
  EXPECT_TRUE(rules.ok()) << rules.status();
  return rules.value_or(ShapingRules());
}

absl::Status Refusal(const Policy& policy) {
  return ShapingRules::Resolve(policy, kGroups).status();
}

TrafficPod Pod(const std::string& pod_namespace, cni::InternetOptions options = {}) {
  return {.host_link = "spk1",
          .host_index = 7,
          .pod_namespace = pod_namespace,
          .pod_name = "p",
          .internet = options};
}

TEST(ShapingRules, OfAnEmptyPolicyOnlyOptionsHold) {
  const ShapingRules rules = Resolved(Policy());
  EXPECT_THAT(rules.scopes(), ElementsAre(kInternet));
  EXPECT_EQ(rules.PodLimit(Pod("x"), kInternet, kIngress), kNone);
  const TrafficPod requesting = Pod("x", {.ingress = 5 * kMbit, .egress = 3 * kMbit});
  EXPECT_EQ(rules.PodLimit(requesting, kInternet, kIngress),
            (RateLimit{.rate = 5 * kMbit, .name = "annotation"}));
  EXPECT_EQ(rules.PodLimit(requesting, kInternet, kEgress).rate, 3 * kMbit);
  EXPECT_EQ(rules.PodLimit(requesting, kMirror, kIngress), kNone) << "options are for the Internet";
  EXPECT_EQ(rules.TeamOf("x"), kNoTeam);
}

TEST(ShapingRules, LimitsSelectByNamespaceByTeamOrAll) {
  Policy policy = Base();
  Put(policy, "BandwidthLimit/all", policy::BandwidthLimit{.pod_ingress = 100 * kMbit});
  Put(policy, "BandwidthLimit/by-team",
      policy::BandwidthLimit{.teams = {"vision"}, .pod_ingress = 50 * kMbit});
  Put(policy, "BandwidthLimit/by-namespace",
      policy::BandwidthLimit{.namespaces = {"vision-data"}, .pod_ingress = 20 * kMbit});
  Put(policy, "BandwidthLimit/both",
      policy::BandwidthLimit{
          .namespaces = {"web"}, .teams = {"speech"}, .pod_ingress = 30 * kMbit});
  const ShapingRules rules = Resolved(policy);
  EXPECT_EQ(rules.PodLimit(Pod("x"), kInternet, kIngress).name, "all");
  EXPECT_EQ(rules.PodLimit(Pod("vision-train"), kInternet, kIngress).name, "by-team");
  EXPECT_EQ(rules.PodLimit(Pod("vision-data"), kInternet, kIngress).name, "by-namespace");
  EXPECT_EQ(rules.PodLimit(Pod("web"), kInternet, kIngress).name, "both");
  EXPECT_EQ(rules.PodLimit(Pod("speech"), kInternet, kIngress).name, "both");
  EXPECT_EQ(rules.PodLimit(Pod("speech"), kInternet, kEgress), kNone);
}

TEST(ShapingRules, TheLowestHoldsThePodsOwnOptionsAmongThem) {
  Policy policy = Base();
  Put(policy, "BandwidthLimit/b", policy::BandwidthLimit{.pod_egress = 40 * kMbit});
  Put(policy, "BandwidthLimit/a", policy::BandwidthLimit{.pod_egress = 40 * kMbit});
  const ShapingRules rules = Resolved(policy);
  EXPECT_EQ(rules.PodLimit(Pod("x"), kInternet, kEgress).name, "a");
  EXPECT_EQ(rules.PodLimit(Pod("x", {.egress = 39 * kMbit}), kInternet, kEgress).name,
            "annotation");
  EXPECT_EQ(rules.PodLimit(Pod("x", {.egress = 41 * kMbit}), kInternet, kEgress).name, "a")
      << "a pod's options give it no more than it may have";
}

TEST(ShapingRules, ShadowCountsOnlyWhereNothingIsEnforced) {
  Policy policy = Base();
  Put(policy, "BandwidthLimit/trial",
      policy::BandwidthLimit{.pod_ingress = kMbit, .node_ingress = 10 * kMbit, .shadow = true});
  const RateLimit trial{.rate = kMbit, .shadow = true, .name = "trial"};
  EXPECT_EQ(Resolved(policy).PodLimit(Pod("x"), kInternet, kIngress), trial);
  EXPECT_TRUE(Resolved(policy).NodeLimit(kInternet, kIngress).shadow);
  EXPECT_EQ(Resolved(policy).PodLimit(Pod("x", {.ingress = 9 * kMbit}), kInternet, kIngress),
            (RateLimit{.rate = 9 * kMbit, .name = "annotation"}));
  Put(policy, "BandwidthLimit/real",
      policy::BandwidthLimit{.pod_ingress = 5 * kMbit, .node_ingress = 50 * kMbit});
  EXPECT_EQ(Resolved(policy).PodLimit(Pod("x"), kInternet, kIngress).name, "real");
  EXPECT_EQ(Resolved(policy).NodeLimit(kInternet, kIngress).name, "real");
}

TEST(ShapingRules, NodeRatesAreOfAllPodsOrOfEachTeam) {
  Policy policy = Base();
  Put(policy, "BandwidthLimit/node", policy::BandwidthLimit{.node_ingress = 900 * kMbit});
  Put(policy, "BandwidthLimit/teams",
      policy::BandwidthLimit{
          .teams = {"vision", "speech"}, .node_ingress = 300 * kMbit, .node_egress = 200 * kMbit});
  const ShapingRules rules = Resolved(policy);
  EXPECT_EQ(rules.NodeLimit(kInternet, kIngress).rate, 900 * kMbit);
  EXPECT_EQ(rules.NodeLimit(kInternet, kEgress), kNone);
  EXPECT_EQ(rules.TeamLimit("vision", kInternet, kIngress).rate, 300 * kMbit);
  EXPECT_EQ(rules.TeamLimit("speech", kInternet, kEgress).rate, 200 * kMbit);
  EXPECT_EQ(rules.TeamLimit(kNoTeam, kInternet, kIngress), kNone);
  EXPECT_EQ(rules.TeamLimit("vision", kMirror, kIngress), kNone);
}

TEST(ShapingRules, GroupsAreScopesOfTheirOwn) {
  Policy policy = Base();
  Put(policy, "BandwidthLimit/mirror",
      policy::BandwidthLimit{.destination_group = "mirror", .pod_ingress = 7 * kMbit});
  Put(policy, "BandwidthBudget/data", BudgetOf({"vision"}, "data"));
  const ShapingRules rules = Resolved(policy);
  EXPECT_THAT(rules.scopes(), ElementsAre(kInternet, kMirror, kData));
  EXPECT_EQ(rules.PodLimit(Pod("x"), kMirror, kIngress).rate, 7 * kMbit);
  EXPECT_EQ(rules.PodLimit(Pod("x"), kInternet, kIngress), kNone);
  EXPECT_EQ(rules.Budget(kInternet, kIngress), nullptr);
  ASSERT_NE(rules.Budget(kData, kIngress), nullptr);
  EXPECT_EQ(rules.Budget(kData, kIngress)->name, "data");
  EXPECT_EQ(rules.Budget(kData, kEgress), nullptr);
  EXPECT_THAT(rules.host_names(),
              ElementsAre(Pair("*.data.example.org", kData), Pair("data.example.net", kData),
                          Pair("mirror.example.org", kMirror)));
}

TEST(ShapingRules, BudgetsCallTeamsThatTheyDoNotNameTheOthers) {
  Policy policy = Base();
  Put(policy, "BandwidthBudget/internet", BudgetOf({"vision", "*", "speech", "vision"}));
  const ShapingRules rules = Resolved(policy);
  const ResolvedBudget* budget = rules.Budget(kInternet, kIngress);
  ASSERT_NE(budget, nullptr);
  EXPECT_THAT(budget->teams, ElementsAre("speech", "vision"));
  EXPECT_EQ(budget->TeamIn("vision"), "vision");
  EXPECT_EQ(budget->TeamIn("robots"), kOtherTeams);
  EXPECT_EQ(budget->TeamIn(kNoTeam), kOtherTeams);
  EXPECT_EQ(budget->floor, kMbit);
  EXPECT_EQ(budget->half_life, absl::Seconds(30));
  EXPECT_EQ(rules.TeamOf("vision-data"), "vision");
}

TEST(ShapingRules, RefusesWhatCannotHoldNamingTheObject) {
  struct {
    std::string key;
    decltype(policy::Entry::value) value;
    std::string message;
  } const cases[] = {
      {"BandwidthLimit/x", policy::BandwidthLimit{.teams = {"robots"}, .pod_ingress = kMbit},
       "BandwidthLimit/x: names the team robots, which is not there"},
      {"BandwidthLimit/x", policy::BandwidthLimit{.teams = {"*"}, .pod_ingress = kMbit},
       "BandwidthLimit/x: names the team *"},
      {"BandwidthLimit/x",
       policy::BandwidthLimit{.destination_group = "nowhere", .pod_ingress = kMbit},
       "BandwidthLimit/x: names the destination group nowhere, which is not there"},
      {"BandwidthLimit/x", policy::BandwidthLimit{.namespaces = {"web"}, .node_egress = kMbit},
       "BandwidthLimit/x: limits namespaces of a node together"},
      {"BandwidthBudget/x", BudgetOf({"robots"}), "BandwidthBudget/x: names the team robots"},
      {"BandwidthBudget/x", BudgetOf({}, "nowhere"),
       "BandwidthBudget/x: names the destination group nowhere"},
      {"BandwidthBudget/x", BudgetOf({}, "mirror"),
       "BandwidthBudget/x: is a budget of what the budget first is of already"},
      {"Team/x", policy::Team{.namespaces = {"vision-data"}}, "Team/x: namespace vision-data"},
  };
  for (const auto& c : cases) {
    Policy policy = Base();
    Put(policy, "BandwidthBudget/first", BudgetOf({}, "mirror"));
    policy.entries[c.key] = {.key = c.key, .bytes = {}, .value = c.value};
    const absl::Status status = Refusal(policy);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
}

TEST(ShapingRules, BudgetsOfBothDirectionsStandSideBySide) {
  Policy policy = Base();
  Put(policy, "BandwidthBudget/down", BudgetOf({}));
  policy::BandwidthBudget up = BudgetOf({});
  up.egress = true;
  Put(policy, "BandwidthBudget/up", up);
  const ShapingRules rules = Resolved(policy);
  EXPECT_EQ(rules.budgets().size(), 2U);
  EXPECT_EQ(rules.Budget(kInternet, kEgress)->name, "up");
  EXPECT_THAT(Resolved(Base()).budgets(), IsEmpty());
}

}  // namespace
}  // namespace spoke::netagent
