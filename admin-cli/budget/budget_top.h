// The verb `top budgets`: who uses how much of what is shared.
#pragma once

#include "absl/status/statusor.h"
#include "admin-cli/budget/rate_history.h"
#include "admin-cli/session.h"

namespace spoke::ctl {

// Reads budgets once and prints each with the teams that use most of it; the fullest budget comes
// first. With --watch each call is one reading, and `history` has those before. Errors:
// kInvalidArgument (an option that is about traffic).
absl::StatusOr<int> BudgetTop(Session& session, RateHistory& history);

}  // namespace spoke::ctl
