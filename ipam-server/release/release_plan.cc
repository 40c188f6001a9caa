#include "ipam-server/release/release_plan.h"

#include <algorithm>

#include "lib/base/check.h"

namespace spoke::ipam {

std::vector<size_t> PlanRelease(const ReleasePolicy& policy, const NodeHoldings& node,
                                absl::Time now) {
  CHECK(node.jitter >= 0 && node.jitter < 1, "jitter is in [0, 1)");
  const absl::Duration idle_time =
      node.draining ? absl::ZeroDuration() : policy.idle_time + policy.jitter_spread * node.jitter;
  uint64_t held = 0;
  std::vector<size_t> ripe;
  for (size_t i = 0; i < node.units.size(); ++i) {
    const ReleaseUnit& unit = node.units[i];
    CHECK(unit.size > 0, "a unit has addresses");
    held += unit.size;
    if (!unit.available || unit.denied_until > now) continue;
    if (node.draining || now - unit.available_since >= idle_time) ripe.push_back(i);
  }
  const uint64_t target = node.draining ? 0 : node.target;
  if (held <= target) return {};
  uint64_t surplus = held - target;
  if (!node.draining && surplus < policy.hysteresis) return {};

  std::stable_sort(ripe.begin(), ripe.end(), [&](size_t a, size_t b) {
    return node.units[a].available_since < node.units[b].available_since;
  });
  std::vector<size_t> release;
  for (const size_t i : ripe) {
    if (node.units[i].size > surplus) continue;  // A smaller one behind it may still fit.
    surplus -= node.units[i].size;
    release.push_back(i);
  }
  return release;
}

}  // namespace spoke::ipam
