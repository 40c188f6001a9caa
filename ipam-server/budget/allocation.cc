#include "ipam-server/budget/allocation.h"

#include <algorithm>
#include <limits>

#include "lib/base/check.h"
#include "lib/base/max_min.h"

namespace spoke::ipam {
namespace {

// Sums of doubles are a little more or less than they should be. So much of a pool stays unused for
// it never to be exceeded.
constexpr double kRounding = 1e-12;

struct Totals {
  double sum = 0;
  float highest = 0;
};

Totals TotalsOf(const std::vector<float>& demands) {
  // Sums side by side, since each addition would have to wait for the one before.
  double even = 0;
  double odd = 0;
  float highest = 0;
  size_t i = 0;
  for (; i + 1 < demands.size(); i += 2) {
    even += static_cast<double>(demands[i]);
    odd += static_cast<double>(demands[i + 1]);
    highest = std::max(highest, std::max(demands[i], demands[i + 1]));
  }
  if (i < demands.size()) {
    even += static_cast<double>(demands[i]);
    highest = std::max(highest, demands[i]);
  }
  return {even + odd, highest};
}

// Moves those above `level` to `kept`, which may be where they are, and returns how many they are.
// `below`: the sum of the others. No branch depends on a demand: half of them would be foretold
// wrong, which costs more than all the rest.
size_t KeepAbove(double level, std::span<const float> demands, float* kept, double& below) {
  double even = 0;
  double odd = 0;
  size_t count = 0;
  size_t i = 0;
  const auto keep = [&](float demand, double& sum) {
    const auto exact = static_cast<double>(demand);
    sum += std::min(exact, level);
    kept[count] = demand;
    count += static_cast<size_t>(exact > level);
  };
  for (; i + 1 < demands.size(); i += 2) {
    const float second = demands[i + 1];
    keep(demands[i], even);
    keep(second, odd);
  }
  if (i < demands.size()) keep(demands[i], even);
  below = std::max(even + odd - static_cast<double>(count) * level, 0.0);
  return count;
}

// `scratch` has room for all demands.
double LevelOf(double share, const std::vector<float>& demands, const Totals& totals,
               std::vector<float>& scratch) {
  if (share >= totals.sum) return static_cast<double>(totals.highest);
  if (share <= 0) return 0;
  // An equal part for each is too low a level, since some want less than that. What these leave
  // goes to the others, in equal parts again, until nobody wants less.
  std::span<const float> left(demands);
  double rest = share;
  while (true) {
    const double level = rest / static_cast<double>(left.size());
    double below = 0;
    const size_t above = KeepAbove(level, left, scratch.data(), below);
    if (above == left.size() || above == 0) return level;
    rest -= below;
    left = std::span<const float>(scratch.data(), above);
  }
}

}  // namespace

std::vector<TeamAllocation> Allocate(const BudgetSpec& spec, units::FractionalBitRate pool,
                                     std::span<const TeamDemands> demands) {
  CHECK(demands.size() == spec.teams.size(), "a team's demands stand where the team does");
  pool = (1 - kRounding) * std::max(pool, units::FractionalBitRate());
  std::vector<Totals> totals;
  totals.reserve(demands.size());
  size_t most = 0;
  for (const TeamDemands& team : demands) {
    totals.push_back(TotalsOf(team.by_node));
    most = std::max(most, team.by_node.size());
  }
  const std::vector<units::FractionalBitRate> bounds = TeamBounds(spec, pool);
  std::vector<base::Claimant> claimants;
  claimants.reserve(demands.size());
  for (size_t i = 0; i < demands.size(); ++i) {
    claimants.push_back({.demand = std::min(totals[i].sum, bounds[i].count()),
                         .weight = spec.teams[i].weight,
                         .min = static_cast<double>(spec.teams[i].min.count())});
  }
  const std::vector<double> shares = base::WeightedMaxMin(pool.count(), claimants);
  std::vector<float> scratch(most);
  std::vector<TeamAllocation> allocations(demands.size());
  for (size_t i = 0; i < demands.size(); ++i) {
    const double level = LevelOf(shares[i], demands[i].by_node, totals[i], scratch);
    allocations[i] = {units::FractionalBitRate(shares[i]), units::FractionalBitRate(level)};
  }
  return allocations;
}

std::vector<units::FractionalBitRate> TeamBounds(const BudgetSpec& spec,
                                                 units::FractionalBitRate pool) {
  double weights = 0;
  for (const BudgetTeam& team : spec.teams) weights += team.weight;
  std::vector<units::FractionalBitRate> bounds;
  bounds.reserve(spec.teams.size());
  for (const BudgetTeam& team : spec.teams) {
    double bound = std::numeric_limits<double>::infinity();
    if (!team.max.is_zero()) bound = static_cast<double>(team.max.count());
    if (!spec.borrow) {
      const double part = pool.count() * team.weight / weights;
      bound = std::min(bound, std::max(part, static_cast<double>(team.min.count())));
    }
    bounds.emplace_back(bound);
  }
  return bounds;
}

units::FractionalBitRate NodeLevel(units::FractionalBitRate share,
                                   const std::vector<float>& demands) {
  std::vector<float> scratch(demands.size());
  return units::FractionalBitRate(
      LevelOf(share.count() * (1 - kRounding), demands, TotalsOf(demands), scratch));
}

}  // namespace spoke::ipam
