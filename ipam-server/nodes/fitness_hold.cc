#include "ipam-server/nodes/fitness_hold.h"

#include <algorithm>

namespace spoke::ipam {
namespace {

// More do not make the wait longer.
constexpr size_t kMaxFlaps = 8;

}  // namespace

absl::Duration FitnessHold::TimeToFit(const HoldTimes& times) const {
  if (!joined_) return absl::ZeroDuration();
  absl::Duration time = times.fit;
  for (size_t i = 1; i < flaps_.size(); ++i) time = std::min(times.longest, time * 2);
  return time;
}

HeldFitness FitnessHold::Observe(const Fitness& seen, bool joining, const HoldTimes& times,
                                 absl::Time now) {
  if (!latest_ || latest_->ready != seen.ready) ready_since_ = now;
  if (!latest_ || latest_->no_addresses != seen.no_addresses) exhausted_since_ = now;
  latest_ = seen;
  if (!joining) joined_ = true;
  while (!flaps_.empty() && now - flaps_.front() > times.flaps_of) flaps_.pop_front();

  HeldFitness held{
      .ready = std::nullopt, .exhausted = std::nullopt, .latest = seen, .since = ready_since_};
  const absl::Duration ready_for = now - ready_since_;
  if (!seen.ready) counts_fit_ = false;
  if (seen.ready && (counts_fit_ || ready_for >= TimeToFit(times))) {
    held.ready = counts_fit_ = true;
    counts_unfit_ = false;
  } else if (!seen.ready && ready_for >= (joined_ ? times.unfit : times.joining)) {
    held.ready = false;
    if (joined_ && !counts_unfit_) {
      counts_unfit_ = true;
      if (flaps_.size() < kMaxFlaps) flaps_.push_back(now);
    }
  }
  const absl::Duration exhausted_for = now - exhausted_since_;
  if (seen.no_addresses && exhausted_for >= times.exhausted) held.exhausted = true;
  if (!seen.no_addresses && exhausted_for >= times.room) held.exhausted = false;
  return held;
}

}  // namespace spoke::ipam
