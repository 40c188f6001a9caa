// How bandwidth budgets stand, for operators. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "ipam-server/budget/budget_book.h"
#include "proto/spoke/v1/admin.pb.h"

namespace spoke::ipam {

inline constexpr size_t kMaxBudgetNodes = 1000;  // The nodes in an answer: those that use most.

// `nodes` are named: those of the budget and the team that were asked for; none when no team was.
// Errors: kInvalidArgument (a team without a budget), kNotFound (no such budget, or no such team in
// it; the message says which there are).
absl::StatusOr<v1::GetBudgetsResponse> QueryBudgets(
    const std::vector<BudgetStanding>& standings,
    std::vector<std::pair<std::string, NodeBudgetStanding>> nodes,
    const v1::GetBudgetsRequest& request);

}  // namespace spoke::ipam
