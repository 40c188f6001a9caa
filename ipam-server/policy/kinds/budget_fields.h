// The parts of a bandwidth budget that are lists and maps of their own. Pure. What is wrong is
// recorded with its line, as config_text.h says.
#pragma once

#include <map>
#include <string>

#include "ipam-server/budget/budget_spec.h"
#include "lib/config/config_text.h"
#include "nlohmann/json_fwd.hpp"

namespace spoke::ipam {

// The maps of the teams that a budget names, by name. They borrow from the document.
using BudgetTeamMaps = std::map<std::string, config::ConfigMap>;

// Reads `teams`, sorted, with "*".
BudgetTeamMaps ReadBudgetTeams(const config::ConfigMap& spec, BudgetSpec& out);
// Reads `grant` and `onLoss`.
void ReadGrant(const config::ConfigMap& spec, BudgetSpec& out);
void ReadOnLoss(const config::ConfigMap& spec, BudgetSpec& out);

// Whether what teams are promised can be given at all, once everything else is read.
void CheckTeamRates(const config::ConfigMap& spec, const BudgetTeamMaps& maps,
                    const BudgetSpec& read);

// The canonical form, defaults written out.
nlohmann::json TeamsJson(const BudgetSpec& spec);
nlohmann::json GrantJson(const BudgetSpec& spec);
nlohmann::json OnLossJson(const BudgetSpec& spec);

}  // namespace spoke::ipam
