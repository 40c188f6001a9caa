#include "ipam-server/budget/grant_belief.h"

#include <algorithm>

namespace spoke::ipam {

int HalvingsAt(absl::Time until, absl::Duration half_life, absl::Time now) {
  if (now < until) return 0;
  if (half_life <= absl::ZeroDuration()) return kHalvings;
  const int64_t halvings = (now - until) / (half_life * kClockMargin);
  return static_cast<int>(std::min<int64_t>(halvings, kHalvings));
}

units::BitRate DecayedRate(units::BitRate rate, absl::Time until, absl::Duration half_life,
                           absl::Time now) {
  if (now < until) return rate;
  const int halvings = HalvingsAt(until, half_life, now);
  if (halvings == kHalvings) return {};
  const uint64_t left = rate.count() >> static_cast<unsigned>(halvings);
  const bool whole = left << static_cast<unsigned>(halvings) == rate.count();
  return units::BitRate(whole ? left : left + 1);
}

void GrantBelief::Add(uint64_t message, units::BitRate rate, uint32_t connections,
                      absl::Time until) {
  if (grants_.empty() && rate.is_zero()) return;
  if (grants_.size() == kMost) {
    Grant& first = grants_[0];
    const Grant& second = grants_[1];
    first = {std::max(first.message, second.message), std::max(first.rate, second.rate),
             std::max(first.connections, second.connections), std::max(first.until, second.until)};
    grants_.erase(grants_.begin() + 1);
  }
  grants_.push_back({message, rate, connections, until});
}

void GrantBelief::OnApplied(uint64_t message) {
  auto* const over = std::remove_if(grants_.begin(), grants_.end(), [message](const Grant& grant) {
    return grant.message < message;
  });
  grants_.erase(over, grants_.end());
  DropNothing();
}

void GrantBelief::Extend(absl::Duration by) {
  for (Grant& grant : grants_) grant.until += by;
}

units::BitRate GrantBelief::RateAt(absl::Time now, absl::Duration half_life) const {
  units::BitRate most;
  for (const Grant& grant : grants_) {
    if (grant.rate > most) {
      most = std::max(most, DecayedRate(grant.rate, grant.until, half_life, now));
    }
  }
  return most;
}

uint32_t GrantBelief::ConnectionsAt(absl::Time now, absl::Duration half_life) const {
  uint32_t most = 0;
  for (const Grant& grant : grants_) {
    if (grant.connections > most &&
        (now < grant.until || !DecayedRate(grant.rate, grant.until, half_life, now).is_zero())) {
      most = grant.connections;
    }
  }
  return most;
}

void GrantBelief::DropNothing() {
  if (std::all_of(grants_.begin(), grants_.end(),
                  [](const Grant& grant) { return grant.rate.is_zero(); })) {
    grants_.clear();
  }
}

}  // namespace spoke::ipam
