#include "tests/bench/swarm/sim_budgets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace spoke::swarm {
namespace {

using testing::AllOf;
using testing::Ge;
using testing::IsEmpty;
using testing::Le;

constexpr uint64_t kFloor = 1000;

v1::PolicyBundle Bundle(bool full, const std::vector<std::string>& names) {
  v1::PolicyBundle bundle;
  bundle.set_full(full);
  bundle.add_changed()->set_key("ClusterNetwork/main");
  for (const std::string& name : names) {
    v1::PolicyEntry& entry = *bundle.add_changed();
    entry.set_key("BandwidthBudget/" + name);
    entry.mutable_bandwidth_budget()->set_floor(kFloor);
    for (const char* team : {"audio", "text", "vision"}) {
      entry.mutable_bandwidth_budget()->add_teams(team);
    }
  }
  return bundle;
}

std::set<std::string> BudgetsIn(SimBudgets& budgets) {
  v1::BudgetReport report;
  std::set<std::string> names;
  if (!budgets.FillReport(report)) return names;
  for (const auto& use : report.uses()) names.insert(use.budget());
  return names;
}

TEST(SimBudgets, SaysNothingWithoutABudget) {
  SimBudgets budgets(1);
  v1::BudgetReport report;
  EXPECT_FALSE(budgets.FillReport(report));
  budgets.TakePolicy(Bundle(true, {}));
  EXPECT_FALSE(budgets.FillReport(report));
}

TEST(SimBudgets, ReportsWhatThePolicyHas) {
  SimBudgets budgets(1);
  budgets.TakePolicy(Bundle(true, {"a", "b"}));
  EXPECT_THAT(BudgetsIn(budgets), testing::ElementsAre("a", "b"));
  v1::PolicyBundle change = Bundle(false, {"c"});
  change.add_removed("BandwidthBudget/a");
  change.add_removed("Team/b");
  budgets.TakePolicy(change);
  EXPECT_THAT(BudgetsIn(budgets), testing::ElementsAre("b", "c"));
  budgets.TakePolicy(Bundle(true, {"d"}));
  EXPECT_THAT(BudgetsIn(budgets), testing::ElementsAre("d"));
}

TEST(SimBudgets, NodesHaveOneToThreeTeamsAndAllAreSomewhere) {
  std::set<int> counts;
  std::set<std::string> teams;
  for (uint32_t node = 0; node < 100; ++node) {
    SimBudgets budgets(node);
    budgets.TakePolicy(Bundle(true, {"a"}));
    v1::BudgetReport report;
    ASSERT_TRUE(budgets.FillReport(report));
    counts.insert(report.uses_size());
    for (const auto& use : report.uses()) teams.insert(use.team());
  }
  EXPECT_THAT(counts, testing::ElementsAre(1, 2, 3));
  EXPECT_THAT(teams, testing::ElementsAre("*", "audio", "text", "vision"));
}

TEST(SimBudgets, UsesWhatItHoldsAndTheFloorAndSaysWhatIsHeldBack) {
  SimBudgets budgets(1);
  budgets.TakePolicy(Bundle(true, {"a"}));
  v1::BudgetReport report;
  ASSERT_TRUE(budgets.FillReport(report));
  EXPECT_EQ(report.sequence(), 1U);
  EXPECT_EQ(report.applied(), 0U);
  v1::BudgetGrants grants;
  grants.set_sequence(1);
  grants.set_answers(1);
  for (const auto& use : report.uses()) {
    EXPECT_THAT(use.usage(), Le(kFloor));
    EXPECT_EQ(use.usage() + use.throttled(), use.demand());
    v1::BudgetGrants::Grant& grant = *grants.add_grants();
    grant.set_budget("a");
    grant.set_team(use.team());
    grant.set_rate(5000);
  }
  EXPECT_THAT(budgets.TakeGrants(grants), IsEmpty());
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(budgets.FillReport(report));
    EXPECT_EQ(report.applied(), 1U);
    for (const auto& use : report.uses()) {
      EXPECT_EQ(use.held(), 5000U);
      EXPECT_THAT(use.usage(), AllOf(Ge(std::min<uint64_t>(use.demand(), 5000)), Le(6000U)));
    }
  }
  grants.set_sequence(2);
  grants.clear_grants();
  EXPECT_THAT(budgets.TakeGrants(grants), IsEmpty());
  ASSERT_TRUE(budgets.FillReport(report));
  EXPECT_EQ(report.uses(0).held(), 0U) << "what is not there is taken";
}

TEST(SimBudgets, ComplainsAboutGrantsThatAreOldOrAnswerNothing) {
  SimBudgets budgets(1);
  budgets.TakePolicy(Bundle(true, {"a"}));
  v1::BudgetReport report;
  ASSERT_TRUE(budgets.FillReport(report));
  v1::BudgetGrants grants;
  grants.set_sequence(1);
  grants.set_answers(2);
  EXPECT_EQ(budgets.TakeGrants(grants), "grants answer report 2; the last one was 1");
  grants.set_answers(1);
  EXPECT_EQ(budgets.TakeGrants(grants), "");
  EXPECT_EQ(budgets.TakeGrants(grants), "grants 1 after 1");
  budgets.BeginStream();
  ASSERT_TRUE(budgets.FillReport(report));
  EXPECT_EQ(report.sequence(), 1U);
  EXPECT_EQ(report.applied(), 0U);
  EXPECT_EQ(budgets.TakeGrants(grants), "") << "sequences begin anew";
}

}  // namespace
}  // namespace spoke::swarm
