// Delay before the next attempt: exponential, with full jitter, so that many clients that lost the
// same server do not come back in step. Pure: the caller counts attempts and draws the random
// number.
#pragma once

#include "absl/time/time.h"

namespace spoke::base {

struct Backoff {
  absl::Duration initial = absl::Seconds(1);
  absl::Duration max = absl::Seconds(30);

  // The wait after failed attempt number `attempt` (0 is the first). `jitter` is uniform in [0, 1).
  // The result lies between a tenth of the ceiling and the ceiling, initial * 2^attempt up to max:
  // never zero, or a refused connection would be retried in a tight loop.
  absl::Duration Delay(int attempt, double jitter) const;
};

}  // namespace spoke::base
