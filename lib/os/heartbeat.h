// The time when a loop has last turned, for those who watch whether it still does.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"
#include "lib/os/clock.h"

namespace spoke::os {

// A heartbeat. Thread-safe: the loop beats, others look. Times are CLOCK_MONOTONIC's milliseconds.
class Heartbeat {
 public:
  void Beat(int64_t now_ms = MonotonicMs()) { last_ms_.store(now_ms, std::memory_order_relaxed); }

  // Returns the time since the last beat; zero before the first, for a loop that has not begun is
  // not stuck.
  absl::Duration SilentFor(int64_t now_ms = MonotonicMs()) const {
    const int64_t last = last_ms_.load(std::memory_order_relaxed);
    return last == 0 || now_ms < last ? absl::ZeroDuration() : absl::Milliseconds(now_ms - last);
  }

 private:
  std::atomic<int64_t> last_ms_ = 0;
};

}  // namespace spoke::os
