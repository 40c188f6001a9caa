#include "netagent/connections/connection_passes.h"

#include <algorithm>

namespace spoke::netagent {

bool IsOfAny(std::span<const ip::Address> ends, const AddressSet& released) {
  return std::any_of(ends.begin(), ends.end(),
                     [&](const ip::Address& end) { return released.contains(end); });
}

ConnectionPasses::ConnectionPasses(absl::Duration cooldown)
    : pause_(std::clamp(cooldown / 4, kShortestPause, kLongestPause)) {}

std::optional<absl::Time> ConnectionPasses::NextPass(const std::set<ip::Address>& waiting) const {
  if (waiting.empty() || under_way()) return std::nullopt;
  absl::Time first = absl::InfiniteFuture();
  for (const ip::Address& address : waiting) {
    const auto retry = retry_at_.find(address);
    if (retry == retry_at_.end()) return not_before_;  // It has not been tried yet.
    first = std::min(first, retry->second);
  }
  return std::max(not_before_, first);
}

void ConnectionPasses::OnBegun(absl::Time now) { begun_ = now; }

void ConnectionPasses::OnEnded(absl::Time now, const std::set<ip::Address>& failed) {
  not_before_ = now + std::max(pause_, begun_ ? now - *begun_ : absl::ZeroDuration());
  begun_.reset();
  retry_at_.clear();
  for (const ip::Address& address : failed) retry_at_[address] = now + kRetryPause;
}

}  // namespace spoke::netagent
