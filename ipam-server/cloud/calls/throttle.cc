#include "ipam-server/cloud/calls/throttle.h"

#include <algorithm>
#include <cmath>

namespace spoke::ipam {
namespace {

// The tolerance where rounding would otherwise make a whole token look like none.
constexpr double kEpsilon = 1e-6;
// A moment of refill is learned from whole seconds, and the clocks differ a little.
constexpr absl::Duration kTickMargin = absl::Seconds(1);
constexpr absl::Duration kShortestWait = absl::Milliseconds(1);
// How long a bucket is left alone once it is used up, before a call finds out.
constexpr absl::Duration kProbeAfter = absl::Seconds(3);

double Intervals(absl::Duration duration, const LimitRate& rate) {
  return absl::FDivDuration(duration, rate.interval);
}

}  // namespace

// Three things hold at `now`, without knowing the moment of refill, for an estimate that held at
// `base_` (D below is what the cloud counts as used; it never exceeds capacity - estimate):
//  - every full interval since then has brought one refill;
//  - a bucket smaller by one refill, and refilled continuously, never allows what the stepwise one
//    would refuse: in any time t at least t / interval - 1 refills come;
//  - a take from above that smaller bucket, or from whole refills that the continuous count has not
//    come to, may have used up the one refill: the continuous count starts an interval after it.
double Throttle::Estimate(absl::Time now) const {
  if (base_ == absl::InfinitePast()) return rate_.capacity;
  if (now <= base_) return tokens_;
  if (!rate_.stepwise) {
    return std::min(rate_.capacity, tokens_ + Intervals(now - base_, rate_) * rate_.refill);
  }
  if (tick_.has_value()) {
    const double ticks =
        std::floor(Intervals(now - *tick_, rate_)) - std::floor(Intervals(base_ - *tick_, rate_));
    return std::min(rate_.capacity, tokens_ + ticks * rate_.refill);
  }
  return std::min(rate_.capacity, std::max(WholeRefills(now), SpreadRefills(now)));
}

double Throttle::WholeRefills(absl::Time now) const {
  return tokens_ + std::floor(Intervals(now - base_, rate_)) * rate_.refill;
}

double Throttle::SpreadRefills(absl::Time now) const {
  double spread = tokens_;
  if (now > refilled_from_) spread += Intervals(now - refilled_from_, rate_) * rate_.refill;
  // A spread count that passes the capacity has outlived every debt.
  if (spread >= rate_.capacity) return rate_.capacity;
  return std::min(spread, std::max(tokens_, rate_.capacity - rate_.refill));
}

void Throttle::Set(double tokens, absl::Time now) {
  refilled_from_ = std::max(refilled_from_, now);
  tokens_ = tokens;
  base_ = now;
}

double Throttle::LeftAt(absl::Time now) const {
  if (now < closed_until_) return 0;
  const double left = Estimate(now) + kEpsilon;
  return left < 1 && now >= ProbeAt() ? 1 + kEpsilon : left;
}

absl::Time Throttle::ProbeAt() const {
  const bool may = rate_.probes && rate_.stepwise && !tick_.has_value();
  if (!may || base_ == absl::InfinitePast()) return absl::InfiniteFuture();
  return std::max(base_ + kProbeAfter, no_probe_until_);
}

absl::Time Throttle::NextTick(absl::Time after) const {
  return *tick_ + (std::floor(Intervals(after - *tick_, rate_)) + 1) * rate_.interval;
}

absl::Time Throttle::When(double units, absl::Time now) const {
  if (units > rate_.capacity) return absl::InfiniteFuture();
  const absl::Time open = std::max(now, closed_until_);
  if (LeftAt(open) >= units) return open;
  const double missing = units - tokens_;
  absl::Time when;
  if (!rate_.stepwise) {
    when = base_ + missing / rate_.refill * rate_.interval;
  } else if (tick_.has_value()) {
    when = NextTick(base_) + (std::ceil(missing / rate_.refill) - 1) * rate_.interval;
  } else {
    when = base_ + std::ceil(missing / rate_.refill) * rate_.interval;
    if (units <= rate_.capacity - rate_.refill) {
      when = std::min(when, refilled_from_ + missing / rate_.refill * rate_.interval);
    }
  }
  if (units <= 1) when = std::min(when, ProbeAt());
  return std::max(when, open + kShortestWait);
}

Throttle::Ticket Throttle::Take(double units, absl::Time now) {
  const double left = Estimate(now);
  const bool probe = left + kEpsilon < units;
  if (probe) no_probe_until_ = now + rate_.interval;
  const bool beyond = left > rate_.capacity - rate_.refill ||
                      (base_ != absl::InfinitePast() && left > SpreadRefills(now));
  Set(left - units, now);
  if (rate_.stepwise && beyond) refilled_from_ = now + rate_.interval;
  const Ticket ticket{.units = units, .answered_before = answered_};
  taken_ += units;
  return ticket;
}

void Throttle::Answered(const Ticket& ticket, std::optional<double> remaining, absl::Time now) {
  answered_ += ticket.units;
  if (!remaining.has_value()) return;
  // All that was under way with it for some time.
  const double others = taken_ - ticket.answered_before - ticket.units;
  const double at_most = std::clamp(*remaining, 0.0, rate_.capacity);
  const double at_least = std::max(0.0, at_most - others);
  // What was left all the same can be used up, and then the question is as open as before.
  if (at_most >= 1) no_probe_until_ = absl::InfinitePast();
  const double estimate = Estimate(now);
  if (estimate < at_least || estimate > at_most) {
    // A refill has been, at some moment before: taking this one for it is late, never early.
    if (rate_.probes && !tick_.has_value() && at_least - estimate >= rate_.refill / 2) tick_ = now;
    Set(at_least, now);
    if (rate_.stepwise) refilled_from_ = now + rate_.interval;
  }
}

void Throttle::Refuse(absl::Duration retry_after, absl::Duration margin, absl::Time now) {
  closed_until_ = std::max(closed_until_, now + retry_after + margin);
  tokens_ = std::min(0.0, Estimate(now));
  base_ = now;
  refilled_from_ = now + rate_.interval;
  if (!rate_.stepwise) return;
  // Only a wait within one interval ends with a refill; a longer one tells nothing of its moment.
  if (retry_after > absl::ZeroDuration() && retry_after <= rate_.interval) {
    tick_ = now + retry_after + kTickMargin;
  } else {
    tick_.reset();
  }
}

bool Throttle::AtRest(absl::Time now) const {
  return now >= closed_until_ && taken_ <= answered_ && Estimate(now) + kEpsilon >= rate_.capacity;
}

}  // namespace spoke::ipam
