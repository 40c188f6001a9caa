#include "netagent/shaping/budget_holder.h"

#include <algorithm>
#include <set>

namespace spoke::netagent {
namespace {

// The most reports that may still be answered. They go out at most ten times a second, and an
// answer that is as late as that is worth nothing.
constexpr size_t kMaxUnanswered = 256;
// The number of halvings after which a grant is gone: halved so often, nothing is left of any rate.
constexpr int64_t kGoneAfter = 64;

using Key = std::pair<std::string, std::string>;

const ResolvedBudget* Find(const std::vector<ResolvedBudget>& budgets, const std::string& name) {
  const auto found =
      std::find_if(budgets.begin(), budgets.end(),
                   [&](const ResolvedBudget& budget) { return budget.name == name; });
  return found == budgets.end() ? nullptr : &*found;
}

// Returns how often a grant has been halved when `since` has passed from the end of its hold.
int64_t Halvings(absl::Duration since, absl::Duration half_life) {
  if (since < absl::ZeroDuration()) return 0;
  if (half_life <= absl::ZeroDuration()) return kGoneAfter;
  absl::Duration rest;
  return std::min(absl::IDivDuration(since, half_life, &rest), kGoneAfter - 1) + 1;
}

uint64_t Halved(uint64_t count, int64_t halvings) {
  return halvings >= kGoneAfter ? 0 : count >> static_cast<unsigned>(halvings);
}

units::BitRate RateAfter(units::BitRate rate, int64_t halvings) {
  return units::BitRate(Halved(rate.count(), halvings));
}

// Returns what is left of a limit of connections. 0 stands for "not limited", which a limit does
// not decay to.
uint32_t ConnectionsAfter(uint32_t connections, int64_t halvings) {
  if (connections == 0) return 0;
  return std::max<uint32_t>(static_cast<uint32_t>(Halved(connections, halvings)), 1);
}

}  // namespace

void BudgetHolder::OnStream() {
  applied_ = 0;
  sent_.clear();
}

void BudgetHolder::OnReportSent(uint64_t sequence, absl::Time now) {
  sent_[sequence] = now;
  if (sent_.size() > kMaxUnanswered) sent_.erase(sent_.begin());
}

bool BudgetHolder::OnGrants(const node_api::BudgetGrants& grants, absl::Time now) {
  if (grants.sequence <= applied_) return false;
  const auto sent = sent_.find(grants.answers);
  if (sent == sent_.end()) return false;
  const absl::Time from = std::min(sent->second, now);
  std::map<Key, Held> held;
  for (const node_api::BudgetGrant& grant : grants.grants) {
    const Held fresh{.rate = grant.rate,
                     .connections = grant.connections,
                     .from = from,
                     .duration = std::max(grant.duration, absl::ZeroDuration())};
    const auto [known, added] = held.emplace(Key(grant.budget, grant.team), fresh);
    // A server does not say one thing twice. If it does, the lower one is certainly ours.
    if (!added && fresh.rate < known->second.rate) known->second = fresh;
  }
  held_ = std::move(held);
  applied_ = grants.sequence;
  // No later message answers an earlier report than this one does.
  sent_.erase(sent_.begin(), sent);
  return true;
}

GrantInForce BudgetHolder::Left(const Held& held, const ResolvedBudget& budget, absl::Time now) {
  const absl::Time end = held.from + held.duration;
  const int64_t halvings = Halvings(now - (end + budget.hold), budget.half_life);
  GrantInForce left{.held = RateAfter(held.rate, halvings),
                    .connections = ConnectionsAfter(held.connections, halvings),
                    .mode = GrantMode::kGranted,
                    .age = std::max(now - held.from, absl::ZeroDuration())};
  if (halvings > 0) {
    left.mode = GrantMode::kDecaying;
  } else if (now >= end) {
    left.mode = GrantMode::kHolding;
  }
  return left;
}

std::vector<GrantInForce> BudgetHolder::At(
    absl::Time now, const std::vector<ResolvedBudget>& budgets,
    const std::vector<std::pair<std::string, std::string>>& here) const {
  std::set<Key> rows(here.begin(), here.end());
  std::map<std::string, uint64_t> teams_here;
  for (const auto& [budget, team] : rows) ++teams_here[budget];
  for (const auto& [key, held] : held_) rows.insert(key);

  const std::set<Key> with_pods(here.begin(), here.end());
  std::vector<GrantInForce> all;
  for (const Key& key : rows) {
    const ResolvedBudget* budget = Find(budgets, key.first);
    if (budget == nullptr) continue;
    const bool has_pods = with_pods.contains(key);
    // Parts of teams without pods would come on top of the floor.
    const units::BitRate floor =
        has_pods ? budget->floor / teams_here[key.first] : units::BitRate();
    GrantInForce row;
    if (const auto held = held_.find(key); held != held_.end()) {
      row = Left(held->second, *budget, now);
      if (row.mode == GrantMode::kDecaying && row.held.is_zero() && !has_pods) continue;
      if (row.mode == GrantMode::kDecaying && row.held <= floor) row.mode = GrantMode::kFloor;
    }
    row.budget = key.first;
    row.team = key.second;
    row.rate = std::max(row.held, floor);
    all.push_back(std::move(row));
  }
  return all;
}

absl::Time BudgetHolder::NextChange(absl::Time now,
                                    const std::vector<ResolvedBudget>& budgets) const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [key, held] : held_) {
    const ResolvedBudget* budget = Find(budgets, key.first);
    if (budget == nullptr) continue;
    const absl::Time end = held.from + held.duration;
    const absl::Time hold_end = end + budget->hold;
    if (now < end) {
      next = std::min(next, end);
    } else if (now < hold_end) {
      next = std::min(next, hold_end);
    } else {
      const int64_t halvings = Halvings(now - hold_end, budget->half_life);
      const bool settled = RateAfter(held.rate, halvings).is_zero() &&
                           ConnectionsAfter(held.connections, halvings) <= 1;
      if (!settled && halvings < kGoneAfter) {
        next = std::min(next, hold_end + halvings * budget->half_life);
      }
    }
  }
  return next;
}

}  // namespace spoke::netagent
