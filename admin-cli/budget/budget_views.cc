#include "admin-cli/budget/budget_views.h"

#include <algorithm>

#include "absl/time/time.h"
#include "admin-cli/budget/rate_history.h"
#include "lib/base/status.h"
#include "lib/units/text.h"

namespace spoke::ctl {
namespace {

using units::BitRate;
using units::Rounded;

absl::Status CheckTeam(const v1::BudgetInfo& budget, const std::string& team) {
  std::string names;
  for (const v1::BudgetTeamInfo& one : budget.teams()) {
    if (one.name() == team) return absl::OkStatus();
    names += (names.empty() ? "" : ", ") + one.name();
  }
  return absl::NotFoundError(
      fmt::format("budget {} has no share for team {}: teams that it does not name share \"{}\"; "
                  "there are: {}",
                  budget.name(), team, kOtherTeams, names));
}

// Says why the server found nothing, with what there is.
absl::Status NothingFound(const Session& session, const std::string& name,
                          const std::string& team) {
  std::string names;
  const auto all = session.client.Ask(kGetBudgets);
  if (absl::IsNotFound(all.status())) return all.status();  // The context is none.
  if (all.ok()) {
    for (const v1::BudgetInfo& budget : all->budgets()) {
      if (budget.name() == name && !team.empty()) return CheckTeam(budget, team);
      names += (names.empty() ? "" : ", ") + budget.name();
    }
  }
  if (names.empty()) {
    return absl::NotFoundError(
        fmt::format("there is no budget {}, nor any other; a BandwidthBudget makes one", name));
  }
  return absl::NotFoundError(fmt::format("there is no budget {}; there are: {}", name, names));
}

std::string LossOf(const v1::BudgetInfo& budget) {
  return fmt::format("held for {}, then halved every {}",
                     absl::FormatDuration(absl::Seconds(budget.hold_s())),
                     absl::FormatDuration(absl::Seconds(budget.half_life_s())));
}

// Returns a cell for a bound, where zero is none.
Cell BoundCell(BitRate rate) {
  return rate.is_zero() ? Cell{"-", Tone::kFaint} : Cell{Rounded(rate)};
}

Cell ConnectionsCell(uint32_t number) {
  return {fmt::format("{}/s", number), number == 0 ? Tone::kFaint : Tone::kPlain};
}

}  // namespace

absl::StatusOr<v1::GetBudgetsResponse> ReadBudgets(const Session& session, const std::string& name,
                                                   const std::string& team) {
  v1::GetBudgetsRequest request;
  request.set_name(name);
  request.set_team(team);
  auto response = session.client.Ask(kGetBudgets, request);
  if (!absl::IsNotFound(response.status())) RETURN_IF_ERROR(response.status());
  if (!response.ok() || (!name.empty() && response->budgets().empty())) {
    RETURN_IF_ERROR(NothingFound(session, name, team));
    return response.ok() ? absl::NotFoundError("no such budget") : response.status();
  }
  if (!team.empty()) RETURN_IF_ERROR(CheckTeam(response->budgets(0), team));
  return response;
}

std::string DestinationOf(const v1::BudgetInfo& budget) {
  return budget.destination_group().empty() ? "Internet" : "group:" + budget.destination_group();
}

const char* DirectionOf(const v1::BudgetInfo& budget) {
  return budget.egress() ? "Egress" : "Ingress";
}

const char* ModeOf(const v1::BudgetInfo& budget) { return budget.shadow() ? "Shadow" : "Enforce"; }

BitRate GrantableOf(const v1::BudgetInfo& budget) {
  return BitRate(budget.capacity() - std::min(budget.floors(), budget.capacity()));
}

bool IsSaturated(const v1::BudgetInfo& budget) {
  return budget.usage() > 0 && static_cast<double>(budget.usage()) >=
                                   0.95 * static_cast<double>(GrantableOf(budget).count());
}

std::string FullnessOf(const v1::BudgetInfo& budget, BitRate usage) {
  if (budget.shadow() && budget.capacity() > 0 && usage.count() > budget.capacity()) {
    return "100 % (would be)";
  }
  return FormatShare(usage.count(), budget.capacity());
}

Cell StateCell(const v1::BudgetInfo& budget) {
  if (budget.learning_s() > 0) {
    return {"learning " + absl::FormatDuration(absl::Seconds(budget.learning_s())), Tone::kNote};
  }
  if (IsSaturated(budget)) return {"saturated", Tone::kWarning};
  return {"ok", Tone::kGood};
}

Json ToJson(const v1::BudgetTeamInfo& team) {
  return {{"name", team.name()},
          {"weight", team.weight()},
          {"min_bits", team.min()},
          {"max_bits", team.max()},
          {"usage_bits", team.usage()},
          {"demand_bits", team.demand()},
          {"granted_bits", team.granted()},
          {"fair_bits", team.fair()},
          {"throttled_bits", team.throttled()},
          {"connections", team.connections()},
          {"refused_connections", team.refused_connections()},
          {"nodes", team.nodes()}};
}

Json ToJson(const v1::BudgetInfo& budget) {
  return {{"name", budget.name()},
          {"destination_group", budget.destination_group()},
          {"direction", DirectionOf(budget)},
          {"mode", ModeOf(budget)},
          {"state", StateCell(budget).text},
          {"capacity_bits", budget.capacity()},
          {"usage_bits", budget.usage()},
          {"granted_bits", budget.granted()},
          {"unknown_bits", budget.unknown()},
          {"floors_bits", budget.floors()},
          {"connections_per_second", budget.connections()},
          {"borrow", budget.borrow()},
          {"learning_seconds", budget.learning_s()},
          {"grant_seconds", budget.grant_s()},
          {"refresh_seconds", budget.refresh_s()},
          {"hold_seconds", budget.hold_s()},
          {"half_life_seconds", budget.half_life_s()},
          {"teams", JsonList(budget.teams(), [](const auto& team) { return ToJson(team); })}};
}

Cell BitRateCell(BitRate rate) {
  return {Rounded(rate), rate.is_zero() ? Tone::kFaint : Tone::kPlain};
}

ListForm<v1::BudgetInfo> BudgetForm() {
  using Budget = v1::BudgetInfo;
  return {
      .what = "bandwidth budgets",
      .name = [](const Budget& budget) { return budget.name(); },
      .json = [](const Budget& budget) { return ToJson(budget); },
      .columns =
          {{"NAME", [](const Budget& budget) { return Cell{budget.name()}; }},
           {"DESTINATION", [](const Budget& budget) { return Cell{DestinationOf(budget)}; }},
           {"DIRECTION", [](const Budget& budget) { return Cell{DirectionOf(budget)}; }},
           {"MODE",
            [](const Budget& budget) {
              return Cell{ModeOf(budget), budget.shadow() ? Tone::kNote : Tone::kPlain};
            }},
           {"CAPACITY",
            [](const Budget& budget) { return BitRateCell(BitRate(budget.capacity())); }},
           {"USED", [](const Budget& budget) { return BitRateCell(BitRate(budget.usage())); }},
           {"GRANTED", [](const Budget& budget) { return BitRateCell(BitRate(budget.granted())); }},
           {"UNKNOWN", [](const Budget& budget) { return BitRateCell(BitRate(budget.unknown())); },
            true},
           {"FLOORS", [](const Budget& budget) { return BitRateCell(BitRate(budget.floors())); },
            true},
           {"CONNECTIONS",
            [](const Budget& budget) {
              return budget.connections() == 0 ? Cell{"-", Tone::kFaint}
                                               : ConnectionsCell(budget.connections());
            },
            true},
           {"BORROW", [](const Budget& budget) { return Cell{budget.borrow() ? "yes" : "no"}; },
            true},
           {"GRANT",
            [](const Budget& budget) {
              return Cell{absl::FormatDuration(absl::Seconds(budget.grant_s()))};
            },
            true},
           {"ON-LOSS", [](const Budget& budget) { return Cell{LossOf(budget)}; }, true},
           {"TEAMS",
            [](const Budget& budget) {
              return NumberCell(static_cast<uint64_t>(budget.teams_size()));
            }},
           {"STATE", StateCell}}};
}

ListForm<v1::BudgetTeamInfo> BudgetTeamForm(const v1::BudgetInfo& budget) {
  using Team = v1::BudgetTeamInfo;
  return {
      .what = "teams",
      .name = [](const Team& team) { return team.name(); },
      .json = [](const Team& team) { return ToJson(team); },
      .columns = {{"TEAM", [](const Team& team) { return Cell{team.name()}; }},
                  {"WEIGHT",
                   [](const Team& team) { return Cell{fmt::format("{:g}", team.weight())}; }},
                  {"MIN", [](const Team& team) { return BoundCell(BitRate(team.min())); }},
                  {"MAX", [](const Team& team) { return BoundCell(BitRate(team.max())); }},
                  {"USED", [](const Team& team) { return BitRateCell(BitRate(team.usage())); }},
                  {"WANTS", [](const Team& team) { return BitRateCell(BitRate(team.demand())); }},
                  {"GRANTED",
                   [](const Team& team) { return BitRateCell(BitRate(team.granted())); }},
                  {"FAIR", [](const Team& team) { return BitRateCell(BitRate(team.fair())); }},
                  {budget.shadow() ? "WOULD-BE-HELD-BACK" : "HELD-BACK",
                   [](const Team& team) {
                     return Cell{Rounded(BitRate(team.throttled())),
                                 team.throttled() == 0 ? Tone::kFaint : Tone::kWarning};
                   }},
                  {"CONNECTIONS",
                   [](const Team& team) { return ConnectionsCell(team.connections()); }, true},
                  {"REFUSED",
                   [](const Team& team) {
                     return Cell{fmt::format("{}/s", team.refused_connections()),
                                 team.refused_connections() == 0 ? Tone::kFaint : Tone::kWarning};
                   },
                   true},
                  {"NODES", [](const Team& team) { return NumberCell(team.nodes()); }}}};
}

ListForm<v1::NodeBudgetInfo> BudgetNodeForm() {
  using Node = v1::NodeBudgetInfo;
  return {.what = "nodes with pods of the team",
          .name = [](const Node& node) { return node.node(); },
          .json =
              [](const Node& node) {
                return Json{{"node", node.node()},
                            {"usage_bits", node.usage()},
                            {"demand_bits", node.demand()},
                            {"granted_bits", node.granted()},
                            {"believed_bits", node.believed()},
                            {"age_ms", node.age_ms()}};
              },
          .columns =
              {{"NODE", [](const Node& node) { return Cell{node.node()}; }},
               {"USED", [](const Node& node) { return BitRateCell(BitRate(node.usage())); }},
               {"WANTS", [](const Node& node) { return BitRateCell(BitRate(node.demand())); }},
               {"GRANTED", [](const Node& node) { return BitRateCell(BitRate(node.granted())); }},
               {"BELIEVED", [](const Node& node) { return BitRateCell(BitRate(node.believed())); }},
               {"HEARD",
                [](const Node& node) { return Cell{FormatAge(node.age_ms() / 1000) + " ago"}; }}}};
}

}  // namespace spoke::ctl
