#include "admin-cli/budget/budget_top.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "admin-cli/budget/budget_views.h"
#include "admin-cli/traffic/traffic_rates.h"
#include "lib/base/status.h"
#include "lib/units/text.h"

namespace spoke::ctl {
namespace {

using units::BitRate;
using units::Rounded;

// A budget, or a team of one.
struct BudgetRow {
  RateHistory::Key key;  // The team is empty for the whole budget.
  const v1::BudgetInfo* budget = nullptr;
  BitRate usage = {};
  BitRate demand = {};
  BitRate granted = {};
  BitRate fair = {};
  BitRate throttled = {};
  std::vector<double> trend;
};

bool IsWhole(const BudgetRow& row) { return row.key.second.empty(); }

double Fullness(const v1::BudgetInfo& budget) {
  return budget.capacity() == 0
             ? 0
             : static_cast<double>(budget.usage()) / static_cast<double>(budget.capacity());
}

absl::Status CheckOptions(const Arguments& arguments) {
  for (const char* option : {"class", "namespace", "pod", "bytes", "over"}) {
    if (arguments.Given(option)) {
      return absl::InvalidArgumentError(
          fmt::format("top budgets: --{} is about traffic; leave it out", option));
    }
  }
  const std::string& sort = arguments.Text("sort");
  if (sort != "rate" && sort != "name") {
    return absl::InvalidArgumentError(
        fmt::format("top budgets: --sort {} is about traffic; rate and name are possible", sort));
  }
  return absl::OkStatus();
}

std::vector<BudgetRow> TeamRowsOf(const v1::BudgetInfo& budget, bool by_name, size_t limit) {
  std::vector<BudgetRow> rows;
  for (const v1::BudgetTeamInfo& team : budget.teams()) {
    rows.push_back({.key = {budget.name(), team.name()},
                    .budget = &budget,
                    .usage = BitRate(team.usage()),
                    .demand = BitRate(team.demand()),
                    .granted = BitRate(team.granted()),
                    .fair = BitRate(team.fair()),
                    .throttled = BitRate(team.throttled())});
  }
  if (!by_name) {
    std::stable_sort(rows.begin(), rows.end(), [](const BudgetRow& a, const BudgetRow& b) {
      return std::pair(b.usage, b.demand) < std::pair(a.usage, a.demand);
    });
  }
  rows.resize(std::min(rows.size(), limit));
  return rows;
}

std::vector<BudgetRow> RowsOf(const v1::GetBudgetsResponse& response, const Arguments& arguments) {
  const bool by_name = arguments.Text("sort") == "name";
  std::vector<const v1::BudgetInfo*> budgets;
  for (const v1::BudgetInfo& budget : response.budgets()) budgets.push_back(&budget);
  if (!by_name) {
    std::stable_sort(budgets.begin(), budgets.end(),
                     [](const auto* a, const auto* b) { return Fullness(*b) < Fullness(*a); });
  }
  std::vector<BudgetRow> rows;
  for (const v1::BudgetInfo* budget : budgets) {
    const size_t whole = rows.size();
    rows.push_back({.key = {budget->name(), ""},
                    .budget = budget,
                    .usage = BitRate(budget->usage()),
                    .granted = BitRate(budget->granted()),
                    .fair = BitRate(budget->capacity())});
    for (const v1::BudgetTeamInfo& team : budget->teams()) {
      rows[whole].demand += BitRate(team.demand());
      rows[whole].throttled += BitRate(team.throttled());
    }
    for (BudgetRow& row : TeamRowsOf(*budget, by_name, arguments.Count("limit"))) {
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

// Remembers all teams, also those that are not shown: a team that comes into view has a past.
void Remember(const v1::GetBudgetsResponse& response, RateHistory& history) {
  std::map<RateHistory::Key, uint64_t> reading;
  for (const v1::BudgetInfo& budget : response.budgets()) {
    reading[{budget.name(), ""}] = budget.usage();
    for (const auto& team : budget.teams()) reading[{budget.name(), team.name()}] = team.usage();
  }
  history.Add(reading);
}

Json ToJson(const BudgetRow& row) {
  Json value = {{"budget", row.key.first}};
  if (!IsWhole(row)) value["team"] = row.key.second;
  value["capacity_bits"] = row.budget->capacity();
  value["usage_bits"] = row.usage.count();
  value["demand_bits"] = row.demand.count();
  value["granted_bits"] = row.granted.count();
  if (!IsWhole(row)) value["fair_bits"] = row.fair.count();
  value["throttled_bits"] = row.throttled.count();
  value["mode"] = ModeOf(*row.budget);
  return value;
}

Cell HeldBackCell(const BudgetRow& row) {
  if (row.throttled.is_zero()) return BitRateCell({});
  return {Rounded(row.throttled) + (row.budget->shadow() ? " (would be)" : ""), Tone::kWarning};
}

ListForm<BudgetRow> FormOf(const Session& session) {
  ListForm<BudgetRow> form = {
      .what = "bandwidth budgets",
      .name =
          [](const BudgetRow& row) {
            return row.key.first + (IsWhole(row) ? "" : "/" + row.key.second);
          },
      .json = [](const BudgetRow& row) { return ToJson(row); },
      .columns = {{"BUDGET", [](const BudgetRow& row) { return Cell{row.key.first}; }},
                  {"TEAM",
                   [](const BudgetRow& row) {
                     return IsWhole(row) ? Cell{"(all)", Tone::kBold} : Cell{row.key.second};
                   }},
                  {"USED", [](const BudgetRow& row) { return BitRateCell(row.usage); }},
                  {"WANTS", [](const BudgetRow& row) { return BitRateCell(row.demand); }},
                  {"GRANTED", [](const BudgetRow& row) { return BitRateCell(row.granted); }},
                  {"FAIR", [](const BudgetRow& row) { return BitRateCell(row.fair); }},
                  {"HELD-BACK", HeldBackCell},
                  {"FULL", [](const BudgetRow& row) {
                     return Cell{
                         FullnessOf(*row.budget, row.usage),
                         IsWhole(row) && IsSaturated(*row.budget) ? Tone::kWarning : Tone::kPlain};
                   }}}};
  if (session.arguments.Has("watch")) {
    form.columns.push_back(
        {"TREND", [](const BudgetRow& row) {
           const auto full = static_cast<double>(row.budget->capacity());
           return Cell{Sparkline(row.trend, full), Tone::kNote, Change::kIgnored};
         }});
  }
  return form;
}

}  // namespace

absl::StatusOr<int> BudgetTop(Session& session, RateHistory& history) {
  RETURN_IF_ERROR(CheckOptions(session.arguments));
  ASSIGN_OR_RETURN(const v1::GetBudgetsResponse response, ReadBudgets(session, "", ""));
  Remember(response, history);
  std::vector<BudgetRow> rows = RowsOf(response, session.arguments);
  for (BudgetRow& row : rows) row.trend = history.Of(row.key);
  return Done(PrintList(session, FormOf(session), rows));
}

}  // namespace spoke::ctl
