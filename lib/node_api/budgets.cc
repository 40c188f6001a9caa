#include "lib/node_api/budgets.h"

#include <algorithm>
#include <limits>

#include "proto/spoke/v1/node.pb.h"

namespace spoke::node_api {

void ToWire(const BudgetReport& in, v1::BudgetReport& out) {
  out.set_sequence(in.sequence);
  out.set_applied(in.applied);
  for (const BudgetUse& use : in.uses) {
    v1::BudgetReport::Use& to = *out.add_uses();
    to.set_budget(use.budget);
    to.set_team(use.team);
    to.set_usage(use.usage.count());
    to.set_demand(use.demand.count());
    to.set_held(use.held.count());
    to.set_throttled(use.throttled.count());
    to.set_connections(use.connections);
    to.set_held_connections(use.held_connections);
    to.set_refused_connections(use.refused_connections);
  }
}

BudgetReport FromWire(const v1::BudgetReport& in) {
  BudgetReport report{.sequence = in.sequence(), .applied = in.applied()};
  const int uses = std::min(in.uses_size(), kMaxBudgetUses);
  report.uses.reserve(static_cast<size_t>(uses));
  for (int i = 0; i < uses; ++i) {
    const v1::BudgetReport::Use& use = in.uses(i);
    if (!CheckName("budget", use.budget(), kMaxNameBytes).ok() ||
        !CheckName("team", use.team(), kMaxNameBytes).ok()) {
      continue;  // No budget and no team is called that.
    }
    report.uses.push_back(
        {.budget = use.budget(),
         .team = use.team(),
         .usage = std::min(units::BitRate(use.usage()), kMaxBudgetRate),
         .demand = std::min(units::BitRate(use.demand()), kMaxBudgetRate),
         .held = std::min(units::BitRate(use.held()), kMaxBudgetRate),
         .throttled = std::min(units::BitRate(use.throttled()), kMaxBudgetRate),
         .connections = std::min(use.connections(), kMaxBudgetConnections),
         .held_connections = std::min(use.held_connections(), kMaxBudgetConnections),
         .refused_connections = std::min(use.refused_connections(), kMaxBudgetConnections)});
  }
  return report;
}

void ToWire(const BudgetGrants& in, v1::BudgetGrants& out) {
  out.set_sequence(in.sequence);
  out.set_answers(in.answers);
  out.mutable_grants()->Reserve(static_cast<int>(in.grants.size()));
  for (const BudgetGrant& grant : in.grants) {
    v1::BudgetGrants::Grant& to = *out.add_grants();
    to.set_budget(grant.budget);
    to.set_team(grant.team);
    to.set_rate(grant.rate.count());
    to.set_connections(grant.connections);
    to.set_duration_ms(static_cast<uint32_t>(std::clamp<int64_t>(
        absl::ToInt64Milliseconds(grant.duration), 0, std::numeric_limits<uint32_t>::max())));
  }
}

BudgetGrants FromWire(const v1::BudgetGrants& in) {
  BudgetGrants grants{.sequence = in.sequence(), .answers = in.answers(), .grants = {}};
  for (const v1::BudgetGrants::Grant& grant : in.grants()) {
    grants.grants.push_back({.budget = grant.budget(),
                             .team = grant.team(),
                             .rate = std::min(units::BitRate(grant.rate()), kMaxGrantedRate),
                             .connections = grant.connections(),
                             .duration = absl::Milliseconds(grant.duration_ms())});
  }
  return grants;
}

}  // namespace spoke::node_api
