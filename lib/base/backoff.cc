#include "lib/base/backoff.h"

#include <algorithm>
#include <cstdint>

namespace spoke::base {

absl::Duration Backoff::Delay(int attempt, double jitter) const {
  // With more doublings than this the product is past any sensible max.
  constexpr int kMaxDoublings = 30;
  const int doublings = std::clamp(attempt, 0, kMaxDoublings);
  const absl::Duration ceiling = std::min(max, initial * (int64_t{1} << doublings));
  return ceiling * (0.1 + 0.9 * std::clamp(jitter, 0.0, 1.0));
}

}  // namespace spoke::base
