#include "tests/bench/swarm/sim_budgets.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "fmt/core.h"

namespace spoke::swarm {
namespace {

constexpr uint64_t kMostFloors = 50;
constexpr uint64_t kChangeOneIn = 10;  // The number of reports until a team wants something else.
constexpr const char* kOtherTeams = "*";

// Returns "internet" for "BandwidthBudget/internet".
std::string NameOf(const std::string& key) { return key.substr(key.find('/') + 1); }

}  // namespace

void SimBudgets::TakePolicy(const v1::PolicyBundle& policy) {
  std::map<std::string, Budget> before;
  if (policy.full()) before.swap(budgets_);
  for (const std::string& key : policy.removed()) {
    if (std::string_view(key).starts_with("BandwidthBudget/")) budgets_.erase(NameOf(key));
  }
  for (const v1::PolicyEntry& entry : policy.changed()) {
    if (!entry.has_bandwidth_budget()) continue;
    const std::string name = NameOf(entry.key());
    if (const auto kept = before.find(name); kept != before.end()) {
      budgets_[name] = std::move(kept->second);
    }
    TakeBudget(name, entry.bandwidth_budget());
  }
}

void SimBudgets::TakeBudget(const std::string& name, const v1::BandwidthBudgetPolicy& policy) {
  Budget& budget = budgets_[name];
  budget.floor = policy.floor();
  std::vector<std::string> teams(policy.teams().begin(), policy.teams().end());
  teams.emplace_back(kOtherTeams);
  std::mt19937_64 choice(node_);
  std::shuffle(teams.begin(), teams.end(), choice);
  teams.resize(std::min<size_t>(teams.size(), 1 + choice() % kMostTeams));
  std::vector<Use> uses;
  for (std::string& team : teams) {
    const auto same = std::find_if(budget.uses.begin(), budget.uses.end(),
                                   [&](const Use& use) { return use.team == team; });
    Use& use = uses.emplace_back(same == budget.uses.end() ? Use() : *same);
    use.team = std::move(team);
  }
  budget.uses = std::move(uses);
}

std::string SimBudgets::TakeGrants(const v1::BudgetGrants& grants) {
  if (grants.sequence() <= applied_) {
    return fmt::format("grants {} after {}", grants.sequence(), applied_);
  }
  if (grants.answers() == 0 || grants.answers() > sequence_) {
    return fmt::format("grants answer report {}; the last one was {}", grants.answers(), sequence_);
  }
  applied_ = grants.sequence();
  for (auto& [name, budget] : budgets_) {
    for (Use& use : budget.uses) use.held = use.held_connections = 0;
  }
  for (const v1::BudgetGrants::Grant& grant : grants.grants()) {
    const auto budget = budgets_.find(grant.budget());
    if (budget == budgets_.end()) continue;  // The policy has changed meanwhile.
    for (Use& use : budget->second.uses) {
      if (use.team != grant.team()) continue;
      use.held = grant.rate();
      use.held_connections = grant.connections();
    }
  }
  return "";
}

bool SimBudgets::FillReport(v1::BudgetReport& out) {
  if (budgets_.empty()) return false;
  out.Clear();
  out.set_sequence(++sequence_);
  out.set_applied(applied_);
  for (auto& [name, budget] : budgets_) {
    for (Use& use : budget.uses) {
      if (use.demand == 0 || random_() % kChangeOneIn == 0) {
        use.demand = 1 + random_() % (kMostFloors * budget.floor + 1);
      }
      const uint64_t usage = std::min(use.demand, use.held + budget.floor / budget.uses.size());
      v1::BudgetReport::Use& said = *out.add_uses();
      said.set_budget(name);
      said.set_team(use.team);
      said.set_usage(usage);
      said.set_demand(use.demand);
      said.set_held(use.held);
      said.set_throttled(use.demand - usage);
      said.set_connections(static_cast<uint32_t>(random_() % 4));
      said.set_held_connections(use.held_connections);
    }
  }
  return true;
}

}  // namespace spoke::swarm
