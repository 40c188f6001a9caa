#include "tests/bench/azure/floor.h"

#include <algorithm>

namespace spoke::azure_bench {

absl::Duration WriteFloor(int writes, int identities, const azure_sim::Limits& limits) {
  constexpr absl::Duration kStep = absl::Milliseconds(100);
  const azure_sim::Bucket& compute = limits[azure_sim::Policy::kUpdateScaleSetVms].subscription;
  double tokens = compute.most;
  double door = limits.writes.most * identities;
  double done = 0;
  absl::Duration at;
  // The phase is when in a minute it refills; at 0 the first refill is a whole minute away.
  absl::Duration next_refill =
      limits.compute_phase > absl::ZeroDuration() ? limits.compute_phase : absl::Minutes(1);
  while (true) {
    const double sent = std::min({tokens, door, writes - done});
    tokens -= sent;
    door -= sent;
    done += sent;
    if (done >= writes) return at;
    at += kStep;
    door = std::min(limits.writes.most * identities,
                    door + limits.writes.per_second * identities * absl::ToDoubleSeconds(kStep));
    if (at >= next_refill) {
      tokens = std::min(compute.most, tokens + compute.refill);
      next_refill += absl::Minutes(1);
    }
  }
}

}  // namespace spoke::azure_bench
