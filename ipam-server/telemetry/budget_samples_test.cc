#include "ipam-server/telemetry/budget_samples.h"

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/telemetry/server_metrics.h"

namespace spoke::ipam {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// What a scrape shows of them.
std::string Scrape(const std::vector<BudgetStanding>& standings) {
  telemetry::Metrics metrics(ServerMetricSpecs());
  metrics.AddSource([&] { return BudgetSamples(standings, 12, 34); });
  return metrics.Render();
}

BudgetStanding Internet() {
  return {.spec = {.name = "internet", .capacity = units::BitRate(10'000'000'000)},
          .usage = units::BitRate(4),
          .granted = units::BitRate(5),
          .unknown = units::BitRate(6),
          .learning = absl::Milliseconds(1500),
          .teams = {{.team = "vision",
                     .usage = units::BitRate(1),
                     .granted = units::BitRate(2),
                     .throttled = units::BitRate(3)},
                    {.team = "*", .usage = units::BitRate(3), .granted = units::BitRate(3)}}};
}

TEST(BudgetSamples, SayEachBudgetAndItsTeams) {
  BudgetStanding mirror;
  mirror.spec = {.name = "mirror", .egress = true, .capacity = units::BitRate(1'000'000)};
  const std::string text = Scrape({Internet(), mirror});
  for (const char* line :
       {"spoke_budget_capacity_bits{budget=\"internet\",direction=\"ingress\"} 10000000000\n",
        "spoke_budget_capacity_bits{budget=\"mirror\",direction=\"egress\"} 1000000\n",
        "spoke_budget_usage_bits{budget=\"internet\",direction=\"ingress\",team=\"vision\"} 1\n",
        "spoke_budget_granted_bits{budget=\"internet\",direction=\"ingress\",team=\"vision\"} 2\n",
        "spoke_budget_throttled_bits{budget=\"internet\",direction=\"ingress\",team=\"vision\"} "
        "3\n",
        "spoke_budget_usage_bits{budget=\"internet\",direction=\"ingress\",team=\"*\"} 3\n",
        "spoke_budget_unknown_bits{budget=\"internet\",direction=\"ingress\"} 6\n",
        "spoke_budget_learning_seconds{budget=\"internet\",direction=\"ingress\"} 1.5\n",
        "spoke_budget_reports_total 12\n", "spoke_budget_grants_total 34\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(BudgetSamples, CountersAreThereBeforeAnyBudget) {
  const std::string text = Scrape({});
  EXPECT_THAT(text, HasSubstr("spoke_budget_reports_total 12\n"));
  EXPECT_THAT(text, Not(HasSubstr("spoke_budget_usage_bits{")));
}

TEST(BudgetSamples, TeamsBeyondTheCapShareASeriesAndNoBitIsLost) {
  BudgetStanding standing = Internet();
  standing.teams.clear();
  for (int i = 0; i < 250; ++i) {
    standing.teams.push_back({.team = fmt::format("team{:03}", i),
                              .usage = units::BitRate(1),
                              .throttled = units::BitRate(2)});
  }
  const std::string text = Scrape({standing});
  EXPECT_THAT(
      text,
      HasSubstr("usage_bits{budget=\"internet\",direction=\"ingress\",team=\"team099\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("team=\"team100\"")));
  EXPECT_THAT(
      text,
      HasSubstr("usage_bits{budget=\"internet\",direction=\"ingress\",team=\"_other\"} 150\n"));
  EXPECT_THAT(
      text,
      HasSubstr("throttled_bits{budget=\"internet\",direction=\"ingress\",team=\"_other\"} 300\n"));
}

TEST(BudgetSamples, TheNumberOfBudgetsHasAnEnd) {
  std::vector<BudgetStanding> many(kMaxBudgetSeries + 50, Internet());
  for (size_t i = 0; i < many.size(); ++i) many[i].spec.name = fmt::format("b{:04}", i);
  const std::string text = Scrape(many);
  EXPECT_THAT(text, HasSubstr("budget=\"b0099\""));
  EXPECT_THAT(text, Not(HasSubstr("budget=\"b0100\"")));
}

}  // namespace
}  // namespace spoke::ipam
