#include "lib/base/rate_book.h"

#include <algorithm>

namespace spoke::base {
namespace {

// Looking through all keys costs; a flood must not make each request pay it.
constexpr absl::Duration kSweepPause = absl::Seconds(1);

}  // namespace

absl::Duration RateBook::Take(std::string_view key, absl::Time now) {
  auto it = full_at_.find(absl::string_view(key.data(), key.size()));
  if (it == full_at_.end()) {
    const bool may_sweep = now >= next_sweep_ || now + kSweepPause < next_sweep_;
    if (full_at_.size() >= max_keys_ && may_sweep) {
      next_sweep_ = now + kSweepPause;
      absl::erase_if(full_at_, [&](const auto& entry) { return entry.second <= now; });
    }
    if (full_at_.size() >= max_keys_) return absl::ZeroDuration();
    it = full_at_.emplace(std::string(key), now).first;
  }
  const absl::Duration all = rate_.refill * rate_.burst;
  it->second = std::clamp(it->second, now, now + all);
  const absl::Time full_at = it->second + rate_.refill;
  const absl::Duration wait = full_at - now - all;
  if (wait > absl::ZeroDuration()) return wait;
  it->second = full_at;
  return absl::ZeroDuration();
}

}  // namespace spoke::base
