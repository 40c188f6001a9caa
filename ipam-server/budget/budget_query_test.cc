#include "ipam-server/budget/budget_query.h"

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/schema.h"

namespace spoke::ipam {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

v1::GetBudgetsRequest Request(const std::string& name, const std::string& team = "") {
  v1::GetBudgetsRequest request;
  request.set_name(name);
  request.set_team(team);
  return request;
}

std::vector<std::string> NamesOf(const v1::GetBudgetsResponse& response) {
  std::vector<std::string> names;
  for (const v1::BudgetInfo& budget : response.budgets()) names.push_back(budget.name());
  return names;
}

const std::vector<BudgetStanding>& TwoBudgets() {
  static const std::vector<BudgetStanding> two = {
      {.spec = {.name = "mirror",
                .destination_group = "pypi",
                .egress = true,
                .capacity = units::BitRate(5'000'000'000),
                .connections = 100,
                .borrow = false,
                .grant = absl::Seconds(60),
                .hold = absl::Seconds(90),
                .half_life = absl::Seconds(10),
                .shadow = true}},
      {.spec = {.name = "internet", .capacity = units::BitRate(10'000'000'000)},
       .usage = units::BitRate(7),
       .granted = units::BitRate(8),
       .unknown = units::BitRate(9),
       .floors = units::BitRate(10),
       .learning = absl::Milliseconds(1500),
       .teams = {{.team = "vision",
                  .weight = 2,
                  .min = units::BitRate(1),
                  .max = units::BitRate(2),
                  .usage = units::BitRate(3),
                  .demand = units::BitRate(4),
                  .granted = units::BitRate(5),
                  .fair = units::BitRate(6),
                  .throttled = units::BitRate(7),
                  .connections = 8,
                  .refused_connections = 9,
                  .nodes = 10},
                 {.team = "*"}}}};
  return two;
}

TEST(BudgetQuery, SaysAllThatIsKnownByName) {
  const auto response = QueryBudgets(TwoBudgets(), {}, Request(""));
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_THAT(NamesOf(*response), ElementsAre("internet", "mirror"));
  const v1::BudgetInfo& internet = response->budgets(0);
  EXPECT_EQ(internet.capacity(), 10'000'000'000U);
  EXPECT_EQ(internet.usage(), 7U);
  EXPECT_EQ(internet.granted(), 8U);
  EXPECT_EQ(internet.unknown(), 9U);
  EXPECT_EQ(internet.floors(), 10U);
  EXPECT_EQ(internet.learning_s(), 2U) << "rounded up: it is not over";
  EXPECT_TRUE(internet.borrow());
  ASSERT_EQ(internet.teams_size(), 2);
  EXPECT_EQ(internet.teams(0).name(), "*");
  EXPECT_EQ(testing_support::ShortTextOf(internet.teams(1)),
            "name: \"vision\" weight: 2 min: 1 max: 2 usage: 3 demand: 4 granted: 5 fair: 6 "
            "throttled: 7 connections: 8 refused_connections: 9 nodes: 10");
  const v1::BudgetInfo& mirror = response->budgets(1);
  EXPECT_EQ(mirror.destination_group(), "pypi");
  EXPECT_TRUE(mirror.egress());
  EXPECT_TRUE(mirror.shadow());
  EXPECT_FALSE(mirror.borrow());
  EXPECT_EQ(mirror.connections(), 100U);
  EXPECT_EQ(mirror.grant_s(), 60U);
  EXPECT_EQ(mirror.refresh_s(), 5U);
  EXPECT_EQ(mirror.hold_s(), 90U);
  EXPECT_EQ(mirror.half_life_s(), 10U);
  EXPECT_THAT(response->nodes(), IsEmpty());
}

TEST(BudgetQuery, SaysTheNodesThatUseMost) {
  std::vector<std::pair<std::string, NodeBudgetStanding>> nodes;
  for (size_t i = 0; i < kMaxBudgetNodes + 5; ++i) {
    nodes.emplace_back(fmt::format("node{:05}", i),
                       NodeBudgetStanding{.node = i, .budget = "internet", .team = "vision"});
  }
  nodes[700].second = {.budget = "internet",
                       .team = "vision",
                       .usage = units::BitRate(100),
                       .demand = units::BitRate(101),
                       .granted = units::BitRate(102),
                       .believed = units::BitRate(103),
                       .age = absl::Milliseconds(1400)};
  const auto response = QueryBudgets(TwoBudgets(), nodes, Request("internet", "vision"));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_THAT(NamesOf(*response), ElementsAre("internet"));
  ASSERT_EQ(static_cast<size_t>(response->nodes_size()), kMaxBudgetNodes);
  EXPECT_EQ(testing_support::ShortTextOf(response->nodes(0)),
            "node: \"node00700\" budget: \"internet\" team: \"vision\" usage: 100 demand: 101 "
            "granted: 102 believed: 103 age_ms: 1400");
  EXPECT_EQ(response->nodes(1).node(), "node00000") << "those that use the same, by name";
}

TEST(BudgetQuery, WhoAsksForWhatIsNotThereIsToldWhatIs) {
  const auto message = [](const v1::GetBudgetsRequest& request,
                          const std::vector<BudgetStanding>& standings = TwoBudgets()) {
    const auto response = QueryBudgets(standings, {}, request);
    return response.status().ToString();
  };
  EXPECT_EQ(message(Request("hub")),
            "NOT_FOUND: there is no BandwidthBudget \"hub\"; there are: mirror, internet");
  EXPECT_EQ(message(Request("hub"), {}),
            "NOT_FOUND: there is no BandwidthBudget \"hub\", nor any other");
  EXPECT_EQ(message(Request("internet", "audio")),
            "NOT_FOUND: BandwidthBudget \"internet\" has no team \"audio\"; it has: vision, *. "
            "Pods of all other teams count as \"*\"");
  EXPECT_EQ(message(Request("", "vision")),
            "INVALID_ARGUMENT: of which budget is the team vision? Say its name too");
  EXPECT_THAT(NamesOf(QueryBudgets({}, {}, Request("")).value()), IsEmpty())
      << "having none is no mistake";
}

TEST(BudgetQuery, AMessageDoesNotNameAThousand) {
  std::vector<BudgetStanding> many(1000);
  for (size_t i = 0; i < many.size(); ++i) many[i].spec.name = fmt::format("b{}", i);
  const absl::Status status = QueryBudgets(many, {}, Request("x")).status();
  EXPECT_THAT(std::string(status.message()), ::testing::EndsWith("b18, b19 and 980 more"));
}

}  // namespace
}  // namespace spoke::ipam
