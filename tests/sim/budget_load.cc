#include "tests/sim/budget_load.h"

#include <algorithm>

#include "tests/sim/schedule.h"

namespace spoke::sim {
namespace {

constexpr const char* kBudget = "internet";
// What pods would use changes so often.
constexpr absl::Duration kDemandLasts = absl::Seconds(45);

netagent::ResolvedBudget Resolved() {
  const ipam::BudgetSpec spec = SharedBudget();
  netagent::ResolvedBudget budget{.name = spec.name, .floor = ipam::FloorOfNode(spec)};
  for (const ipam::BudgetTeam& team : spec.teams) budget.teams.push_back(team.name);
  budget.refresh = spec.refresh;
  budget.hold = spec.hold;
  budget.half_life = spec.half_life;
  return budget;
}

// Some machines have pods of one team, and some of two.
std::vector<std::pair<std::string, std::string>> TeamsOf(size_t machine) {
  std::vector<std::pair<std::string, std::string>> teams;
  teams.emplace_back(kBudget, machine % 3 == 0 ? ipam::kOtherTeams : "train");
  if (machine % 2 == 0) teams.emplace_back(kBudget, "web");
  return teams;
}

}  // namespace

ipam::BudgetSpec SharedBudget() {
  return {.name = kBudget,
          .capacity = units::BitRate(1'000'000'000),
          .teams = {{.name = ipam::kOtherTeams},
                    {.name = "train", .weight = 3},
                    {.name = "web", .min = units::BitRate(100'000'000)}},
          .floor_nodes = 64};
}

BudgetLoad::BudgetLoad(size_t machine)
    : machine_(machine), budgets_({Resolved()}), here_(TeamsOf(machine)) {}

void BudgetLoad::OnStream(absl::Time now) {
  holder_.OnStream();
  sequence_ = 0;
  streaming_ = true;
  next_report_ = now;
}

void BudgetLoad::OnGrants(const node_api::BudgetGrants& grants, absl::Time now) {
  const units::BitRate before = RateAt(now);
  const bool first = holder_.applied() == 0;
  if (!holder_.OnGrants(grants, now)) return;
  if (first || RateAt(now) < before) next_report_ = now;
}

units::BitRate BudgetLoad::DemandAt(absl::Time now) const {
  const auto period = static_cast<uint64_t>((now - absl::UnixEpoch()) / kDemandLasts);
  Random random(machine_ * 1'000'003 + period);
  return units::BitRate(random.Below(SharedBudget().capacity.count() / 2));
}

std::optional<node_api::BudgetReport> BudgetLoad::TakeReport(absl::Time now) {
  if (!streaming_ || now < next_report_) return std::nullopt;
  next_report_ = now + budgets_.front().refresh;
  node_api::BudgetReport report{.sequence = ++sequence_, .applied = holder_.applied(), .uses = {}};
  for (const netagent::GrantInForce& grant : holder_.At(now, budgets_, here_)) {
    const bool has_pods =
        std::find(here_.begin(), here_.end(), std::pair(grant.budget, grant.team)) != here_.end();
    const units::BitRate demand = has_pods ? DemandAt(now) : units::BitRate();
    report.uses.push_back({.budget = grant.budget,
                           .team = grant.team,
                           .usage = std::min(demand, grant.rate),
                           .demand = demand,
                           .held = grant.held});
  }
  holder_.OnReportSent(report.sequence, now);
  return report;
}

units::BitRate BudgetLoad::RateAt(absl::Time now) const {
  units::BitRate sum;
  for (const netagent::GrantInForce& grant : holder_.At(now, budgets_, here_)) sum += grant.rate;
  return sum;
}

absl::Time BudgetLoad::NextWake(absl::Time now) const {
  const absl::Time change = holder_.NextChange(now, budgets_);
  return streaming_ ? std::min(change, next_report_) : change;
}

}  // namespace spoke::sim
