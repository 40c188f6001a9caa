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
  std::vector<size_t> available;
  for (size_t i = 0; i < node.units.size(); ++i) {
    const ReleaseUnit& unit = node.units[i];
    CHECK(unit.size > 0, "a unit has addresses");
    held += unit.size;
    if (unit.available && unit.denied_until <= now) available.push_back(i);
  }
  const uint64_t target = node.draining ? 0 : node.target;
  if (held <= target) return {};
  uint64_t surplus = held - target;
  const bool worth_a_call = node.draining || surplus >= policy.hysteresis;

  std::stable_sort(available.begin(), available.end(), [&](size_t a, size_t b) {
    return node.units[a].available_since < node.units[b].available_since;
  });
  std::vector<size_t> release;
  uint64_t released = 0;
  for (const size_t i : available) {
    const ReleaseUnit& unit = node.units[i];
    if (unit.size > surplus) continue;  // A smaller one behind it may still fit.
    const bool ripe = worth_a_call && (node.draining || now - unit.available_since >= idle_time);
    if (!ripe && !(unit.scarce && released + unit.size <= node.wanted)) continue;
    surplus -= unit.size;
    released += unit.size;
    release.push_back(i);
  }
  return release;
}

}  // namespace spoke::ipam
