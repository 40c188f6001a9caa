// Tests of budget list, show and explain, and of top budgets.
#include <algorithm>

#include "admin-cli/testing/command_fixture.h"

namespace spoke::ctl {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr uint64_t kMega = 1'000'000;

v1::BudgetTeamInfo& AddTeam(v1::BudgetInfo& to, const std::string& name, double weight,
                            uint64_t wants, uint64_t fair) {
  v1::BudgetTeamInfo& team = *to.add_teams();
  team.set_name(name);
  team.set_weight(weight);
  team.set_demand(wants * kMega);
  team.set_fair(fair * kMega);
  team.set_granted(fair * kMega);
  team.set_usage(std::min(wants, fair) * kMega);
  team.set_throttled(wants > fair ? (wants - fair) * kMega : 0);
  team.set_nodes(wants > 0 ? 2 : 0);
  return team;
}

class BudgetTest : public CommandTest {
 protected:
  // The budget has 1,000 Mbit/s, of which 950 can be granted: vision wants more than it gets,
  // language borrows, "*" leaves most of its part.
  BudgetTest() {
    Change([](FakeState& state) {
      v1::BudgetInfo& internet = state.budgets["internet"];
      internet.set_name("internet");
      internet.set_capacity(1000 * kMega);
      internet.set_floors(50 * kMega);
      internet.set_borrow(true);
      internet.set_usage(940 * kMega);
      internet.set_granted(950 * kMega);
      internet.set_connections(500);
      internet.set_grant_s(120);
      internet.set_refresh_s(5);
      internet.set_hold_s(300);
      internet.set_half_life_s(30);
      AddTeam(internet, "*", 1, 10, 11);
      AddTeam(internet, "language", 2, 400, 400);
      v1::BudgetTeamInfo& vision = AddTeam(internet, "vision", 2, 900, 539);
      vision.set_min(100 * kMega);
      vision.set_connections(400);
      vision.set_refused_connections(25);
      v1::BudgetInfo& datasets = state.budgets["datasets"];
      datasets.set_name("datasets");
      datasets.set_destination_group("hosts");
      datasets.set_egress(true);
      datasets.set_shadow(true);
      datasets.set_capacity(1'250 * kMega);
      AddTeam(datasets, "*", 1, 0, 0);
      v1::NodeBudgetInfo& node = state.budget_nodes.emplace_back();
      node.set_node("node1");
      node.set_budget("internet");
      node.set_team("vision");
      node.set_usage(500 * kMega);
      node.set_demand(800 * kMega);
      node.set_granted(500 * kMega);
      node.set_believed(520 * kMega);
      node.set_age_ms(3200);
    });
  }

  void ChangeBudget(const std::function<void(v1::BudgetInfo&)>& change) {
    Change([&](FakeState& state) { change(state.budgets["internet"]); });
  }
  void ChangeTeam(int index, const std::function<void(v1::BudgetTeamInfo&)>& change) {
    ChangeBudget([&](v1::BudgetInfo& budget) { change(*budget.mutable_teams(index)); });
  }
};

TEST_F(BudgetTest, ListHasOneLineForEach) {
  const Outcome outcome = Run("budget list");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "NAME      DESTINATION  DIRECTION  MODE     CAPACITY     USED        GRANTED     TEAMS "
            " STATE\n"
            "datasets  group:hosts  Egress     Shadow   1.25 Gbit/s  0 bit/s     0 bit/s     1     "
            " ok\n"
            "internet  Internet     Ingress    Enforce  1 Gbit/s     940 Mbit/s  950 Mbit/s  3     "
            " saturated\n");
  EXPECT_EQ(Run("budget list -o name").out, "datasets\ninternet\n");
  EXPECT_THAT(Run("budget list -o wide").out, HasSubstr("held for 5m, then halved every 30s"));
}

TEST_F(BudgetTest, ListSaysHowLongTheServerStillLearns) {
  ChangeBudget([](v1::BudgetInfo& budget) { budget.set_learning_s(80); });
  EXPECT_THAT(Run("budget list").out, HasSubstr("  learning 1m20s\n"));
  EXPECT_EQ(Json("budget list")[1]["learning_seconds"], 80);
}

TEST_F(BudgetTest, JsonHasExactIntegers) {
  ChangeBudget([](v1::BudgetInfo& budget) { budget.set_usage(940'123'457); });
  const nlohmann::json budget = Json("budget show internet");
  EXPECT_EQ(budget["usage_bits"].dump(), "940123457");
  EXPECT_EQ(budget["destination_group"], "");
  EXPECT_EQ(budget["direction"], "Ingress");
  EXPECT_EQ(budget["mode"], "Enforce");
  EXPECT_EQ(budget["teams"][2]["refused_connections"], 25);
  EXPECT_EQ(Json("budget list")[1], budget);
}

TEST_F(BudgetTest, ShowHasTermsAndTeams) {
  const Outcome outcome = Run("budget show internet");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("Used:         940 Mbit/s (94 %)\n"));
  EXPECT_THAT(outcome.out, HasSubstr("Floors:       50 Mbit/s, set apart"));
  EXPECT_THAT(outcome.out, HasSubstr("Grant:        2m, refreshed every 5s\n"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("Unknown")));
  EXPECT_THAT(
      outcome.out,
      HasSubstr(
          "TEAM      WEIGHT  MIN         MAX  USED        WANTS       GRANTED     FAIR        "
          "HELD-BACK   NODES\n"));
  EXPECT_THAT(
      outcome.out,
      HasSubstr(
          "vision    2       100 Mbit/s  -    539 Mbit/s  900 Mbit/s  539 Mbit/s  539 Mbit/s  "
          "361 Mbit/s  2\n"));
  EXPECT_THAT(Run("budget show internet -o wide").out, HasSubstr("400/s        25/s"));
  EXPECT_THAT(Run("budget show datasets").out, HasSubstr("WOULD-BE-HELD-BACK"));
  EXPECT_EQ(Run("budget show internet -o name").out, "internet\n");
}

TEST_F(BudgetTest, WhatIsNotThereIsToldWithWhatIs) {
  const Outcome none = Run("budget show internets");
  EXPECT_EQ(none.code, 4);
  EXPECT_EQ(none.err,
            "spokectl: there is no budget internets; there are: datasets, internet; did you "
            "mean internet?\n");
  const Outcome team = Run("budget explain internet --team audio");
  EXPECT_EQ(team.code, 4);
  EXPECT_THAT(team.err, HasSubstr("no share for team audio"));
  EXPECT_THAT(team.err, HasSubstr("there are: *, language, vision\n"));
  Refuse("GetBudgets", absl::NotFoundError("not this one"));
  EXPECT_EQ(Run("budget explain internet").code, 4);
  Change([](FakeState& state) {
    state.refusals.clear();
    state.budgets.clear();
  });
  EXPECT_THAT(Run("budget show x").err, HasSubstr("nor any other; a BandwidthBudget makes one"));
  EXPECT_EQ(Run("budget list").err, "spokectl: there are no bandwidth budgets\n");
  EXPECT_EQ(Run("budget show").code, 2);
}

TEST_F(BudgetTest, ExplainSaysWhoBorrowsFromWhom) {
  const Outcome outcome = Run("budget explain internet");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              HasSubstr("internet: 1 Gbit/s from the Internet, enforced; 940 Mbit/s used (94 %), "
                        "saturated\n"));
  EXPECT_THAT(outcome.out, HasSubstr("  these borrow what others leave: vision (159 Mbit/s), "
                                     "language (20 Mbit/s)\n"
                                     "  these leave a part: \"*\" (all other teams) (179 "
                                     "Mbit/s)\n"));
  EXPECT_THAT(outcome.out,
              HasSubstr("vision: uses 539 Mbit/s, wants 900 Mbit/s, has 539 Mbit/s "
                        "granted; its fair share is 539 Mbit/s\n"
                        "  weight 2 of 5 is 380 Mbit/s of the 950 Mbit/s that can be "
                        "granted\n"
                        "  it has its part and 159 Mbit/s that others leave: \"*\" (all "
                        "other teams) (179 Mbit/s)\n"
                        "  361 Mbit/s is held back now\n"
                        "  25 new connections a second are refused, and 400 pass\n"
                        "  the budget has 500 new connections a second for all\n"));
  EXPECT_THAT(outcome.out, HasSubstr("  it gets all it wants, 20 Mbit/s of it borrowed"));
  EXPECT_THAT(outcome.out, HasSubstr("  it leaves 179 Mbit/s of its part to others\n"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("node1")));
}

TEST_F(BudgetTest, ExplainOfATeamHasItsNodes) {
  const Outcome outcome = Run("budget explain internet --team vision");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, Not(HasSubstr("language: uses")));
  EXPECT_THAT(outcome.out,
              HasSubstr("NODE   USED        WANTS       GRANTED     BELIEVED    HEARD\n"
                        "node1  500 Mbit/s  800 Mbit/s  500 Mbit/s  520 Mbit/s  3s ago\n"));
  EXPECT_EQ(server_.last_request(), "GetBudgets name: \"internet\" team: \"vision\"");
  const nlohmann::json value = Json("budget explain internet --team vision");
  ASSERT_EQ(value["teams"].size(), 1U);
  EXPECT_EQ(value["teams"][0]["name"], "vision");
  EXPECT_EQ(value["nodes"][0]["believed_bits"], 520 * kMega);
}

TEST_F(BudgetTest, ExplainNamesTheBoundThatHolds) {
  ChangeTeam(2, [](v1::BudgetTeamInfo& vision) { vision.set_max(539 * kMega); });
  EXPECT_THAT(Run("budget explain internet --team vision").out,
              HasSubstr("  its max of 539 Mbit/s is reached: raise max"));
  ChangeTeam(2, [](v1::BudgetTeamInfo& vision) {
    vision.set_max(0);
    vision.set_min(539 * kMega);
  });
  EXPECT_THAT(Run("budget explain internet --team vision").out,
              HasSubstr("  its min of 539 Mbit/s is more than its part"));
  ChangeBudget([](v1::BudgetInfo& budget) { budget.set_borrow(false); });
  ChangeTeam(2, [](v1::BudgetTeamInfo& vision) {
    vision.set_min(0);
    vision.set_fair(380 * kMega);
  });
  EXPECT_THAT(Run("budget explain internet --team vision").out, HasSubstr("borrow: false"));
  ChangeBudget([](v1::BudgetInfo& budget) { budget.set_borrow(true); });
  ChangeTeam(2, [](v1::BudgetTeamInfo& vision) { vision.set_fair(200 * kMega); });
  EXPECT_THAT(Run("budget explain internet --team vision").out,
              HasSubstr("the mins of other teams come first"));
}

TEST_F(BudgetTest, ExplainSaysThatGrantsAreStillToCome) {
  ChangeTeam(2, [](v1::BudgetTeamInfo& vision) { vision.set_granted(200 * kMega); });
  EXPECT_THAT(Run("budget explain internet").out,
              HasSubstr("  200 Mbit/s of its fair share is granted so far\n  the rest follows once "
                        "nodes have said that they use less\n"));
  ChangeBudget([](v1::BudgetInfo& budget) {
    budget.set_unknown(700 * kMega);
    budget.set_learning_s(95);
  });
  const Outcome learning = Run("budget explain internet");
  EXPECT_THAT(learning.out,
              HasSubstr("  the server is learning what the one before it has granted\n"
                        "  700 Mbit/s counts as taken"));
  EXPECT_THAT(learning.out, HasSubstr("the rest is free in 1m35s at the latest"));
}

TEST_F(BudgetTest, ExplainOfShadowSaysWouldBe) {
  ChangeBudget([](v1::BudgetInfo& budget) { budget.set_shadow(true); });
  const Outcome outcome = Run("budget explain internet");
  EXPECT_THAT(outcome.out, HasSubstr("  nothing is held back, since the budget is in Shadow\n"));
  EXPECT_THAT(outcome.out, HasSubstr("361 Mbit/s would be held back"));
  EXPECT_THAT(outcome.out, HasSubstr("25 new connections a second would be refused"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("is held back now")));
}

TEST_F(BudgetTest, ExplainOfATeamWithoutPods) {
  EXPECT_THAT(Run("budget explain datasets").out, HasSubstr("  no node has pods of it\n"));
  // Nothing that a server may answer divides by nothing or underflows.
  Change([](FakeState& state) {
    v1::BudgetInfo& odd = state.budgets["odd"];
    odd.set_name("odd");
    odd.set_floors(7);
    odd.add_teams()->set_demand(UINT64_MAX);
  });
  EXPECT_EQ(Run("budget explain odd").code, 0);
  EXPECT_THAT(Run("budget list").out, HasSubstr("odd       Internet"));
}

TEST_F(BudgetTest, TopHasTheFullestBudgetFirstAndItsTeamsByUse) {
  const Outcome outcome = Run("top budgets");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(
      outcome.out,
      testing::StartsWith("BUDGET    TEAM      USED        WANTS        GRANTED     FAIR         "
                          "HELD-BACK   FULL\n"
                          "internet  (all)     940 Mbit/s  1.31 Gbit/s  950 Mbit/s  1 Gbit/s     "
                          "361 Mbit/s  94 %\n"
                          "internet  vision    539 Mbit/s  900 Mbit/s   539 Mbit/s  539 Mbit/s   "
                          "361 Mbit/s  54 %\n"
                          "internet  language  "));
}

TEST_F(BudgetTest, ABudgetInShadowIsNeverMoreThanFull) {
  ChangeBudget([](v1::BudgetInfo& budget) {
    budget.set_shadow(true);
    budget.set_usage(71'590 * kMega);
  });
  EXPECT_THAT(Run("top budgets").out, HasSubstr("  100 % (would be)\n"));
  EXPECT_THAT(Run("budget show internet").out, HasSubstr("(100 % (would be))\n"));
}

TEST_F(BudgetTest, TopIsJsonAndNames) {
  const nlohmann::json rows = Json("top budgets");
  ASSERT_EQ(rows.size(), 6U);
  EXPECT_EQ(rows[0]["budget"], "internet");
  EXPECT_FALSE(rows[0].contains("team"));
  EXPECT_EQ(rows[1]["team"], "vision");
  EXPECT_EQ(rows[1]["throttled_bits"], 361 * kMega);
  EXPECT_EQ(Run("top budgets -o name --limit 1").out,
            "internet\ninternet/vision\ndatasets\ndatasets/*\n");
  EXPECT_EQ(Run("top budgets -o name --sort name --limit 2").out,
            "datasets\ndatasets/*\ninternet\ninternet/*\ninternet/language\n");
}

TEST_F(BudgetTest, TopRefusesWhatIsAboutTraffic) {
  EXPECT_EQ(Run("top budgets --class internet").code, 2);
  EXPECT_THAT(Run("top budgets --sort out").err, HasSubstr("rate and name are possible"));
}

TEST_F(BudgetTest, WatchHasATrendOfUsageOverCapacity) {
  ChangeBudget([](v1::BudgetInfo& budget) { budget.set_usage(0); });
  between_ = {
      [&] { ChangeBudget([](v1::BudgetInfo& budget) { budget.set_usage(500 * kMega); }); },
      [&] { ChangeBudget([](v1::BudgetInfo& budget) { budget.set_usage(1000 * kMega); }); }};
  const Outcome outcome = Run("top budgets --watch");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("50 %  \u2581\u2585\n"));
  EXPECT_THAT(outcome.out, HasSubstr("100 %  \u2581\u2585\u2588\n"));
  EXPECT_THAT(Run("top budgets").out, Not(HasSubstr("TREND")));
}

TEST_F(BudgetTest, NamesOfBudgetsAndTheirTeamsAreCompleted) {
  const auto complete = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"__complete", "--"});
    return RunWords(words).out;
  };
  EXPECT_EQ(complete({"budget", "show", ""}), "datasets\ninternet\n:\n");
  EXPECT_EQ(complete({"budget", "explain", "internet", "--team", "v"}), "vision\n:\n");
  EXPECT_EQ(complete({"top", "b"}), "budgets\n:\n");
  EXPECT_EQ(complete({"get", "B"}), "BandwidthLimit\nBandwidthBudget\n:\n");
}

}  // namespace
}  // namespace spoke::ctl
