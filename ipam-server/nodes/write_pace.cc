#include "ipam-server/nodes/write_pace.h"

#include <algorithm>

namespace spoke::ipam {

size_t WritePace::Available(absl::Time now) {
  if (filled_ == absl::InfinitePast()) {
    tokens_ = burst_;
    filled_ = now;
  }
  const double seconds = std::max(0.0, absl::ToDoubleSeconds(now - filled_));
  tokens_ = std::min(burst_, tokens_ + seconds * rate_);
  if (now - slowed_ > absl::Seconds(1)) rate_ = std::min(most_, rate_ + seconds * most_ / 10);
  filled_ = std::max(filled_, now);
  return tokens_ < 1 ? 0 : static_cast<size_t>(tokens_);
}

void WritePace::OnThrottled(absl::Time now) {
  if (now - slowed_ < absl::Seconds(1)) return;
  slowed_ = now;
  rate_ = std::max(most_ * kLeastShare, rate_ / 2);
  tokens_ = std::min(tokens_, 0.0);
}

}  // namespace spoke::ipam
