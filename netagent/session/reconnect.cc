#include "netagent/session/reconnect.h"

namespace spoke::netagent {

absl::Duration Reconnect::After(const StreamEnd& end, double jitter) {
  if (end.welcomed && end.lasted >= settings_.settled) failures_ = 0;
  const int attempt = failures_++;
  if (end.skewed) return settings_.backoff.max * (1.0 + jitter);
  if (end.welcomed && attempt == 0) {
    return (within_ > absl::ZeroDuration() ? within_ : settings_.after_session) * jitter;
  }
  return settings_.backoff.Delay(attempt, jitter);
}

}  // namespace spoke::netagent
