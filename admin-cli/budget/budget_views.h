// The looks of bandwidth budgets, wherever they are printed, and the way to ask for them. Pure
// except for the asking.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "admin-cli/output/list_form.h"
#include "admin-cli/session.h"
#include "lib/units/quantity.h"
#include "proto/spoke/v1/admin.pb.h"

namespace spoke::ctl {

// The name of what the teams share that a budget does not name.
inline constexpr const char* kOtherTeams = "*";

// Reads all budgets (`name` empty), or one. Errors: kNotFound with the names that there are, also
// when the budget has no team of its own of that name; those of Client.
absl::StatusOr<v1::GetBudgetsResponse> ReadBudgets(const Session& session, const std::string& name,
                                                   const std::string& team);

// Returns "Internet", or "group:NAME" as traffic classes are called.
std::string DestinationOf(const v1::BudgetInfo& budget);
// These return "Ingress" and "Enforce", or their like, as policy has them.
const char* DirectionOf(const v1::BudgetInfo& budget);
const char* ModeOf(const v1::BudgetInfo& budget);

// Returns the capacity without what is set apart for nodes that have no grant.
units::BitRate GrantableOf(const v1::BudgetInfo& budget);
// Returns whether as good as all that can be granted is in use.
bool IsSaturated(const v1::BudgetInfo& budget);
// Returns how much of the capacity `usage` is: "25 %". In Shadow nothing bounds what is used: at
// most "100 % (would be)".
std::string FullnessOf(const v1::BudgetInfo& budget, units::BitRate usage);
// Returns a cell with "learning 1m20s", "saturated" or "ok".
Cell StateCell(const v1::BudgetInfo& budget);

// Rates are whole bits a second.
Json ToJson(const v1::BudgetInfo& budget);
Json ToJson(const v1::BudgetTeamInfo& team);

ListForm<v1::BudgetInfo> BudgetForm();
ListForm<v1::BudgetTeamInfo> BudgetTeamForm(const v1::BudgetInfo& budget);
ListForm<v1::NodeBudgetInfo> BudgetNodeForm();

// Returns a cell that holds a rate; zero is faint.
Cell BitRateCell(units::BitRate rate);

}  // namespace spoke::ctl
