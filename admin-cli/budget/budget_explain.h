// Says in words why each team of a budget gets what it gets. Pure.
#pragma once

#include <string>
#include <vector>

#include "proto/spoke/v1/admin.pb.h"

namespace spoke::ctl {

// The sentences, from the general to the particular.
struct BudgetWords {
  std::string summary;
  std::vector<std::string> details;
};

// Says how the budget stands altogether: use, floors, learning, unknown grants, and which team
// leaves bandwidth to which.
BudgetWords ExplainBudget(const v1::BudgetInfo& budget);

// Says why `team`, one of the budget's, gets what it gets.
BudgetWords ExplainTeam(const v1::BudgetInfo& budget, const v1::BudgetTeamInfo& team);

}  // namespace spoke::ctl
