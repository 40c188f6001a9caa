// The kind BandwidthBudget: what all nodes together may exchange with one destination, and how
// teams share it. The server gives nodes grants of it; nodes get what they need to use these. Pure.
#pragma once

#include <vector>

#include "ipam-server/budget/budget_spec.h"
#include "ipam-server/policy/objects/object.h"
#include "ipam-server/policy/objects/object_set.h"

namespace spoke::ipam {

// The budgets of the set, by name. No two are of one destination and direction.
std::vector<BudgetSpec> BudgetsOf(const ObjectSet& set);

// The budget of the object; nullptr when it is of another kind.
const BudgetSpec* BudgetOf(const PolicyObject& object);

}  // namespace spoke::ipam
