// The one clock of a simulated fleet, what is to happen when, and the numbers that a seed decides.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "lib/base/fnv1a.h"
#include "lib/os/clock.h"

namespace spoke::sim {

// Numbers that a seed decides, the same on every machine (SplitMix64).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31U);
  }
  // Returns a number below `limit`, which is positive.
  uint64_t Below(uint64_t limit) { return Next() % limit; }
  // Returns a number in [0, 1).
  double Fraction() { return static_cast<double>(Next() >> 11U) * 0x1.0p-53; }
  bool Chance(double probability) { return Fraction() < probability; }
  absl::Duration Between(absl::Duration least, absl::Duration most) {
    return absl::Trunc(least + (most - least) * Fraction(), absl::Microseconds(1));
  }

 private:
  uint64_t state_;
};

// Returns numbers of their own for `name`, so that an event more or less for one part of the fleet
// leaves the luck of all others as it was.
inline Random RandomFor(uint64_t seed, std::string_view name) {
  return Random(base::Fnv1a(name, base::kFnv1aBasis ^ (seed * 0x9E3779B97F4A7C15ULL)));
}

// What is to happen, in the order of time, and at one moment in the order in which it was said. Not
// thread-safe.
class Schedule {
 public:
  absl::Time now() const { return now_; }
  absl::Time began() const { return began_; }
  uint64_t steps() const { return steps_; }

  // Has `act` called at `at`; at once, after what is due already, where that has passed.
  void At(absl::Time at, std::function<void()> act) {
    events_.push({std::max(at, now_), ++last_, std::move(act)});
  }
  void After(absl::Duration wait, std::function<void()> act) { At(now_ + wait, std::move(act)); }

  // Lets the next thing happen; false: nothing does before `until`, which it is then.
  bool Step(absl::Time until) {
    if (events_.empty() || events_.top().at > until) {
      now_ = until;
      return false;
    }
    const std::function<void()> act = std::move(const_cast<Event&>(events_.top()).act);
    now_ = events_.top().at;
    events_.pop();
    ++steps_;
    act();
    return true;
  }

 private:
  struct Event {
    absl::Time at;
    uint64_t order;
    std::function<void()> act;
    bool operator<(const Event& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };

  const absl::Time began_ = absl::FromUnixSeconds(1'800'000'000);
  absl::Time now_ = began_;
  uint64_t last_ = 0;
  uint64_t steps_ = 0;
  std::priority_queue<Event> events_;
};

// A clock of one machine: it may be ahead of or behind the schedule's, and go faster or slower.
class MachineClock final : public os::Clock {
 public:
  // Borrows `schedule`. It shows `ahead` more than the schedule's clock now, and gains `drift` of
  // each second from there.
  MachineClock(const Schedule& schedule, absl::Duration ahead, double drift)
      : schedule_(schedule), since_(schedule.now()), ahead_(ahead), rate_(1 + drift) {}

  absl::Time Now() const override { return since_ + ahead_ + (schedule_.now() - since_) * rate_; }
  // Returns the schedule's time at which this shows `shown`, or a little later.
  absl::Time When(absl::Time shown) const {
    if (shown == absl::InfiniteFuture()) return shown;
    return since_ + (shown - ahead_ - since_) / rate_ + absl::Nanoseconds(2);
  }

 private:
  const Schedule& schedule_;
  const absl::Time since_;
  const absl::Duration ahead_;
  const double rate_;
};

// One wake-up of an actor: the earliest that was asked for, and no other. Not thread-safe.
class Alarm {
 public:
  // Has `act` called at `at`, unless an earlier time was asked for and has not come yet. Borrows
  // both, and must outlive the schedule's run: whoever owns it keeps `act` from doing anything once
  // it is dead.
  void Set(Schedule& schedule, absl::Time at, const std::function<void()>& act) {
    at = std::max(at, schedule.now());
    if (at >= next_ || at == absl::InfiniteFuture()) return;
    next_ = at;
    schedule.At(at, [this, at, act] {
      if (next_ != at) return;
      next_ = absl::InfiniteFuture();
      act();
    });
  }

 private:
  absl::Time next_ = absl::InfiniteFuture();
};

}  // namespace spoke::sim
