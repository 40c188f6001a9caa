#include "lib/base/max_min.h"

#include <algorithm>

namespace spoke::base {
namespace {

// The share that one claimant gets at the water level `level`, which is a share for a weight of 1.
struct Bounds {
  double low = 0;
  double high = 0;
  double weight = 1;

  double At(double level) const { return std::clamp(level * weight, low, high); }
};

Bounds BoundsOf(const Claimant& claimant) {
  double high = std::max(claimant.demand, 0.0);
  if (claimant.max > 0) high = std::min(high, claimant.max);
  return {std::clamp(claimant.min, 0.0, high), high, claimant.weight};
}

// A level at which somebody's share begins to rise (its min is reached), or stops (its demand is).
struct Turn {
  double level = 0;
  double weight = 0;  // The weight that joins those that rise; negative: that leaves them.
};

// The level at which all shares together are `capacity`; they are more at the highest one.
double FindLevel(double capacity, const std::vector<Bounds>& all) {
  std::vector<Turn> turns;
  turns.reserve(all.size() * 2);
  double sum = 0;
  for (const Bounds& bounds : all) {
    sum += bounds.low;
    turns.push_back({bounds.low / bounds.weight, bounds.weight});
    turns.push_back({bounds.high / bounds.weight, -bounds.weight});
  }
  std::sort(turns.begin(), turns.end(),
            [](const Turn& a, const Turn& b) { return a.level < b.level; });
  double level = 0;
  double rising = 0;
  for (const Turn& turn : turns) {
    const double more = (turn.level - level) * rising;
    if (sum + more >= capacity && rising > 0) return level + (capacity - sum) / rising;
    sum += more;
    level = turn.level;
    rising += turn.weight;
  }
  return level;
}

}  // namespace

std::vector<double> WeightedMaxMin(double capacity, std::span<const Claimant> claimants) {
  capacity = std::max(capacity, 0.0);
  std::vector<Bounds> all;
  all.reserve(claimants.size());
  double lows = 0;
  double highs = 0;
  for (const Claimant& claimant : claimants) {
    all.push_back(BoundsOf(claimant));
    lows += all.back().low;
    highs += all.back().high;
  }
  std::vector<double> shares(all.size());
  if (lows >= capacity) {
    const double part = lows > 0 ? capacity / lows : 0;
    std::transform(all.begin(), all.end(), shares.begin(),
                   [part](const Bounds& bounds) { return bounds.low * part; });
    return shares;
  }
  if (highs <= capacity) {
    std::transform(all.begin(), all.end(), shares.begin(),
                   [](const Bounds& bounds) { return bounds.high; });
    return shares;
  }
  const double level = FindLevel(capacity, all);
  std::transform(all.begin(), all.end(), shares.begin(),
                 [level](const Bounds& bounds) { return bounds.At(level); });
  return shares;
}

}  // namespace spoke::base
