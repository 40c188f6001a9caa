// Time as an argument. Code without edges takes absl::Time values; loops take a Clock.
#pragma once

#include <time.h>

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace spoke::os {

// Returns CLOCK_MONOTONIC in milliseconds: the same for all processes of one machine, never set
// back.
inline int64_t MonotonicMs() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

// An interface for the time. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() const = 0;
  // Returns how far the time of day is ahead of Now(), because it was set; negative: behind.
  virtual absl::Duration SetAhead() const { return absl::ZeroDuration(); }
};

class RealClock final : public Clock {
 public:
  absl::Time Now() const override { return absl::Now(); }
};

// A clock of the machine's uptime, for differences of times only: it goes on evenly when the time
// of day is set. Its times are not for people.
class MonotonicClock final : public Clock {
 public:
  absl::Time Now() const override {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return absl::TimeFromTimespec(now);
  }
};

// The time of day as it was when this was made, or an earlier clock of this boot, going on evenly
// from there: whoever measures intervals by it is not misled when the time of day is set. What is
// stored by it and read by a process whose clock began otherwise may lie ahead of that, and has to
// be clamped there.
class SteadyClock final : public Clock {
 public:
  // A clock that borrows both.
  SteadyClock(const Clock& time_of_day, const Clock& uptime)
      : SteadyClock(time_of_day, uptime, time_of_day.Now() - uptime.Now()) {}
  // The same, that shows what another clock of this boot shows, which is so much `ahead` of uptime.
  SteadyClock(const Clock& time_of_day, const Clock& uptime, absl::Duration ahead)
      : time_of_day_(time_of_day), uptime_(uptime), ahead_(ahead) {}

  absl::Time Now() const override { return uptime_.Now() + ahead_; }
  absl::Duration SetAhead() const override { return time_of_day_.Now() - Now(); }

 private:
  const Clock& time_of_day_;
  const Clock& uptime_;
  const absl::Duration ahead_;
};

// A clock that stands still until a test moves it.
class SimClock final : public Clock {
 public:
  explicit SimClock(absl::Time start = absl::UnixEpoch() + absl::Hours(24 * 365)) : now_(start) {}

  absl::Time Now() const override {
    absl::MutexLock lock(&mutex_);
    return now_;
  }
  void Advance(absl::Duration by) {
    absl::MutexLock lock(&mutex_);
    now_ += by;
  }

 private:
  mutable absl::Mutex mutex_;
  absl::Time now_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spoke::os
