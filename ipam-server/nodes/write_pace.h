// How many writes may go to the API server now: so many a second, and fewer for a while after it
// had no room. Pure.
#pragma once

#include <cstddef>

#include "absl/time/time.h"

namespace spoke::ipam {

// Not thread-safe.
class WritePace {
 public:
  // The share of the rate that is kept at the least, however often there is no room.
  static constexpr double kLeastShare = 1.0 / 32;

  // `burst`: how many may go at once after a while without any.
  WritePace(double per_second, double burst)
      : most_(per_second), burst_(burst), rate_(per_second) {}

  // Returns how many may go at `now`, which does not go back.
  size_t Available(absl::Time now);
  // So many go: as many as are available at the most.
  void Take(size_t writes) { tokens_ -= static_cast<double>(writes); }
  // The API server had no room: half as many from now on, at most once a second; it recovers by a
  // tenth of the whole rate each second.
  void OnThrottled(absl::Time now);

  double rate() const { return rate_; }

 private:
  double most_;
  double burst_;
  double rate_;
  double tokens_ = 0;
  absl::Time filled_ = absl::InfinitePast();
  absl::Time slowed_ = absl::InfinitePast();
};

}  // namespace spoke::ipam
