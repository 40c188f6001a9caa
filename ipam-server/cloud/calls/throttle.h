// How much of one limit of a cloud is surely left, as far as its caller can know. Pure.
//
// The cloud counts calls in a token bucket of its own. A continuous one is followed exactly. One
// that is refilled in steps (Azure's Compute: once a minute) is refilled at a moment nobody tells:
// until a refusal gives that moment away, the estimate is one that holds whenever it may be. So
// the estimate is never above the cloud's own count, as long as nobody else uses the limit; what
// others take shows in what the cloud says is left, and corrects the estimate either way. The one
// exception is a probe (LimitRate::probes): LeftAt() then says one call, which may be refused.
#pragma once

#include <optional>

#include "absl/time/time.h"

namespace spoke::ipam {

struct LimitRate {
  double capacity = 0;
  double refill = 0;  // Units an interval.
  absl::Duration interval = absl::Seconds(1);
  bool stepwise = false;  // All of `refill` comes at once, at the end of an interval.
  // When it is used up and nobody knows when it is refilled, one call may go out all the same: if
  // it is refused, that tells the moment; if not, the refill has been. Otherwise up to an interval
  // is lost at the end of every large change.
  bool probes = false;

  double PerSecond() const { return refill / absl::ToDoubleSeconds(interval); }
};

// Not thread-safe. Times never go back.
class Throttle {
 public:
  // What a call took, until its answer is there.
  struct Ticket {
    double units = 0;
    double answered_before = 0;
  };

  // Makes a full one.
  explicit Throttle(const LimitRate& rate) : rate_(rate), tokens_(rate.capacity) {}

  // Units that are surely left, or the one of a probe. A closed throttle has none.
  double LeftAt(absl::Time now) const;
  // The earliest time, not before `now`, at which LeftAt() is `units` if nothing is taken.
  // InfiniteFuture when that is more than it can hold.
  absl::Time When(double units, absl::Time now) const;

  // A call is sent. The caller asked LeftAt() first.
  Ticket Take(double units, absl::Time now);
  // Its answer is there, or will never be. `remaining`: what the cloud said is left. Calls that
  // were under way at the same time may or may not be counted in it: they are taken off once more.
  void Answered(const Ticket& ticket, std::optional<double> remaining, absl::Time now);
  // The cloud refused a call, and wants none before `retry_after` is over; `margin` is added for
  // us, so that not all who were refused come back at once. Teaches when the refills are.
  void Refuse(absl::Duration retry_after, absl::Duration margin, absl::Time now);

  // The time before which nothing may be sent, whatever is left. InfinitePast: never refused.
  absl::Time closed_until() const { return closed_until_; }
  // Returns whether it is as new: whoever keeps it may forget it.
  bool AtRest(absl::Time now) const;
  const LimitRate& rate() const { return rate_; }
  bool knows_phase() const { return tick_.has_value(); }

 private:
  // Returns when a call may first find out when the refills are; InfiniteFuture: none may.
  absl::Time ProbeAt() const;
  double Estimate(absl::Time now) const;
  double WholeRefills(absl::Time now) const;
  double SpreadRefills(absl::Time now) const;
  void Set(double tokens, absl::Time now);
  absl::Time NextTick(absl::Time after) const;

  LimitRate rate_;
  // The tokens that were left at `base_`, at least.
  double tokens_;
  absl::Time base_ = absl::InfinitePast();
  // Stepwise, moment unknown: the time from which the share of a refill that has surely come
  // counts.
  absl::Time refilled_from_ = absl::InfinitePast();
  std::optional<absl::Time> tick_;  // A moment of refill, if known.
  absl::Time closed_until_ = absl::InfinitePast();
  // A probe before then would tell nothing that the last one has not.
  absl::Time no_probe_until_ = absl::InfinitePast();
  double taken_ = 0;     // All units ever taken.
  double answered_ = 0;  // The units that are answered.
};

}  // namespace spoke::ipam
