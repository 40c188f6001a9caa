#include "ipam-server/budget/budget_query.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <tuple>

#include "absl/status/status.h"
#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

constexpr size_t kMaxNamed = 20;  // The most names in a message.

// Returns whole seconds, rounded up: what is not over yet is not shown as over.
uint32_t Seconds(absl::Duration duration) {
  return static_cast<uint32_t>(
      std::clamp<int64_t>(absl::ToInt64Seconds(absl::Ceil(duration, absl::Seconds(1))), 0,
                          std::numeric_limits<uint32_t>::max()));
}

uint32_t Milliseconds(absl::Duration duration) {
  return static_cast<uint32_t>(std::clamp<int64_t>(absl::ToInt64Milliseconds(duration), 0,
                                                   std::numeric_limits<uint32_t>::max()));
}

template <typename List, typename NameOf>
std::string Named(const List& list, const NameOf& name_of) {
  std::string text;
  for (size_t i = 0; i < list.size() && i < kMaxNamed; ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", name_of(list[i]));
  }
  if (list.size() > kMaxNamed) text += fmt::format(" and {} more", list.size() - kMaxNamed);
  return text;
}

void Describe(const TeamStanding& standing, v1::BudgetTeamInfo& out) {
  out.set_name(standing.team);
  out.set_weight(standing.weight);
  out.set_min(standing.min.count());
  out.set_max(standing.max.count());
  out.set_usage(standing.usage.count());
  out.set_demand(standing.demand.count());
  out.set_granted(standing.granted.count());
  out.set_fair(standing.fair.count());
  out.set_throttled(standing.throttled.count());
  out.set_connections(standing.connections);
  out.set_refused_connections(standing.refused_connections);
  out.set_nodes(standing.nodes);
}

void Describe(const BudgetStanding& standing, v1::BudgetInfo& out) {
  out.set_name(standing.spec.name);
  out.set_destination_group(standing.spec.destination_group);
  out.set_egress(standing.spec.egress);
  out.set_shadow(standing.spec.shadow);
  out.set_capacity(standing.spec.capacity.count());
  out.set_connections(standing.spec.connections);
  out.set_borrow(standing.spec.borrow);
  out.set_usage(standing.usage.count());
  out.set_granted(standing.granted.count());
  out.set_unknown(standing.unknown.count());
  out.set_floors(standing.floors.count());
  out.set_learning_s(Seconds(standing.learning));
  out.set_grant_s(Seconds(standing.spec.grant));
  out.set_refresh_s(Seconds(standing.spec.refresh));
  out.set_hold_s(Seconds(standing.spec.hold));
  out.set_half_life_s(Seconds(standing.spec.half_life));
  std::vector<const TeamStanding*> teams;
  for (const TeamStanding& team : standing.teams) teams.push_back(&team);
  std::sort(teams.begin(), teams.end(),
            [](const auto* left, const auto* right) { return left->team < right->team; });
  for (const TeamStanding* team : teams) Describe(*team, *out.add_teams());
}

void Describe(const std::string& name, const NodeBudgetStanding& standing,
              v1::NodeBudgetInfo& out) {
  out.set_node(name);
  out.set_budget(standing.budget);
  out.set_team(standing.team);
  out.set_usage(standing.usage.count());
  out.set_demand(standing.demand.count());
  out.set_granted(standing.granted.count());
  out.set_believed(standing.believed.count());
  out.set_age_ms(Milliseconds(standing.age));
}

absl::Status Check(const std::vector<BudgetStanding>& standings,
                   const v1::GetBudgetsRequest& request) {
  if (request.name().empty()) {
    if (request.team().empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        fmt::format("of which budget is the team {}? Say its name too", request.team()));
  }
  const auto budget = std::find_if(
      standings.begin(), standings.end(),
      [&](const BudgetStanding& standing) { return standing.spec.name == request.name(); });
  if (budget == standings.end()) {
    const auto name_of = [](const BudgetStanding& standing) { return standing.spec.name; };
    return absl::NotFoundError(
        standings.empty()
            ? fmt::format("there is no BandwidthBudget \"{}\", nor any other", request.name())
            : fmt::format("there is no BandwidthBudget \"{}\"; there are: {}", request.name(),
                          Named(standings, name_of)));
  }
  if (request.team().empty()) return absl::OkStatus();
  const bool found =
      std::any_of(budget->teams.begin(), budget->teams.end(),
                  [&](const TeamStanding& standing) { return standing.team == request.team(); });
  if (found) return absl::OkStatus();
  return absl::NotFoundError(fmt::format(
      "BandwidthBudget \"{}\" has no team \"{}\"; it has: {}. Pods of all other teams count as "
      "\"{}\"",
      request.name(), request.team(),
      Named(budget->teams, [](const TeamStanding& standing) { return standing.team; }),
      kOtherTeams));
}

}  // namespace

absl::StatusOr<v1::GetBudgetsResponse> QueryBudgets(
    const std::vector<BudgetStanding>& standings,
    std::vector<std::pair<std::string, NodeBudgetStanding>> nodes,
    const v1::GetBudgetsRequest& request) {
  RETURN_IF_ERROR(Check(standings, request));
  v1::GetBudgetsResponse response;
  std::vector<const BudgetStanding*> wanted;
  for (const BudgetStanding& standing : standings) {
    if (request.name().empty() || standing.spec.name == request.name()) wanted.push_back(&standing);
  }
  std::sort(wanted.begin(), wanted.end(),
            [](const auto* left, const auto* right) { return left->spec.name < right->spec.name; });
  for (const BudgetStanding* standing : wanted) Describe(*standing, *response.add_budgets());
  const size_t shown = std::min(nodes.size(), kMaxBudgetNodes);
  std::partial_sort(nodes.begin(), nodes.begin() + static_cast<ptrdiff_t>(shown), nodes.end(),
                    [](const auto& left, const auto& right) {
                      // What uses most first; else the order of names, which stays.
                      return std::tie(right.second.usage, left.first) <
                             std::tie(left.second.usage, right.first);
                    });
  for (size_t i = 0; i < shown; ++i) {
    Describe(nodes[i].first, nodes[i].second, *response.add_nodes());
  }
  return response;
}

}  // namespace spoke::ipam
