#include "ipam-server/telemetry/budget_samples.h"

#include <algorithm>
#include <string>
#include <utility>

namespace spoke::ipam {
namespace {

using telemetry::CounterSpec;
using telemetry::FromSource;
using telemetry::GaugeSpec;
using telemetry::MetricSpec;
using telemetry::OneOf;
using telemetry::Samples;
using telemetry::UpTo;

constexpr const char* kOtherSeries = "_other";

double Number(uint64_t count) { return static_cast<double>(count); }
double Number(units::BitRate rate) { return Number(rate.count()); }

struct TeamSums {
  std::string team;
  units::BitRate usage = {};
  units::BitRate granted = {};
  units::BitRate throttled = {};
};

// Returns the teams by name, so that a team keeps its series while others come and go behind it.
std::vector<TeamSums> TeamsOf(const BudgetStanding& standing) {
  std::vector<TeamSums> teams;
  for (const TeamStanding& team : standing.teams) {
    teams.push_back({team.team, team.usage, team.granted, team.throttled});
  }
  std::sort(teams.begin(), teams.end(),
            [](const TeamSums& left, const TeamSums& right) { return left.team < right.team; });
  if (teams.size() <= kMaxBudgetTeamSeries) return teams;
  TeamSums other{.team = kOtherSeries};
  for (size_t i = kMaxBudgetTeamSeries; i < teams.size(); ++i) {
    other.usage += teams[i].usage;
    other.granted += teams[i].granted;
    other.throttled += teams[i].throttled;
  }
  teams.resize(kMaxBudgetTeamSeries);
  teams.push_back(std::move(other));
  return teams;
}

}  // namespace

std::vector<MetricSpec> BudgetMetricSpecs() {
  return FromSource(
      {GaugeSpec("spoke_budget_capacity_bits",
                 "What all nodes together may exchange by each budget, in bits a second",
                 {UpTo("budget", kMaxBudgetSeries), OneOf("direction", {"ingress", "egress"})}),
       GaugeSpec("spoke_budget_usage_bits",
                 "What pods of each team exchange by each budget, in bits a second",
                 {UpTo("budget", kMaxBudgetSeries), OneOf("direction", {"ingress", "egress"}),
                  UpTo("team", kMaxBudgetTeamSeries + 1)}),
       GaugeSpec("spoke_budget_granted_bits",
                 "What nodes may use of each budget for each team, in bits a second",
                 {UpTo("budget", kMaxBudgetSeries), OneOf("direction", {"ingress", "egress"}),
                  UpTo("team", kMaxBudgetTeamSeries + 1)}),
       GaugeSpec("spoke_budget_throttled_bits",
                 "What is held back of each team by each budget, in bits a second",
                 {UpTo("budget", kMaxBudgetSeries), OneOf("direction", {"ingress", "egress"}),
                  UpTo("team", kMaxBudgetTeamSeries + 1)}),
       GaugeSpec("spoke_budget_unknown_bits",
                 "What nodes not heard since the start may hold of each budget, in bits a second",
                 {UpTo("budget", kMaxBudgetSeries), OneOf("direction", {"ingress", "egress"})}),
       GaugeSpec("spoke_budget_learning_seconds",
                 "Time until nothing of each budget is unknown any more; 0: it is over",
                 {UpTo("budget", kMaxBudgetSeries), OneOf("direction", {"ingress", "egress"})}),
       CounterSpec("spoke_budget_reports_total", "Reports of nodes about budgets that were taken"),
       CounterSpec("spoke_budget_grants_total", "Messages to nodes with their grants of budgets")});
}

std::vector<Samples> BudgetSamples(const std::vector<BudgetStanding>& standings, uint64_t reports,
                                   uint64_t grants) {
  Samples capacity{.metric = "spoke_budget_capacity_bits", .series = {}};
  Samples usage{.metric = "spoke_budget_usage_bits", .series = {}};
  Samples granted{.metric = "spoke_budget_granted_bits", .series = {}};
  Samples throttled{.metric = "spoke_budget_throttled_bits", .series = {}};
  Samples unknown{.metric = "spoke_budget_unknown_bits", .series = {}};
  Samples learning{.metric = "spoke_budget_learning_seconds", .series = {}};
  std::vector<const BudgetStanding*> shown;
  for (const BudgetStanding& standing : standings) shown.push_back(&standing);
  std::sort(shown.begin(), shown.end(),
            [](const auto* left, const auto* right) { return left->spec.name < right->spec.name; });
  if (shown.size() > kMaxBudgetSeries) shown.resize(kMaxBudgetSeries);
  for (const BudgetStanding* standing : shown) {
    const std::string direction = standing->spec.egress ? "egress" : "ingress";
    const std::vector<std::string> labels = {standing->spec.name, direction};
    capacity.series.push_back({labels, Number(standing->spec.capacity)});
    unknown.series.push_back({labels, Number(standing->unknown)});
    learning.series.push_back({labels, absl::ToDoubleSeconds(standing->learning)});
    for (const TeamSums& team : TeamsOf(*standing)) {
      const std::vector<std::string> of_team = {standing->spec.name, direction, team.team};
      usage.series.push_back({of_team, Number(team.usage)});
      granted.series.push_back({of_team, Number(team.granted)});
      throttled.series.push_back({of_team, Number(team.throttled)});
    }
  }
  return {std::move(capacity),
          std::move(usage),
          std::move(granted),
          std::move(throttled),
          std::move(unknown),
          std::move(learning),
          {.metric = "spoke_budget_reports_total", .series = {{{}, Number(reports)}}},
          {.metric = "spoke_budget_grants_total", .series = {{{}, Number(grants)}}}};
}

}  // namespace spoke::ipam
