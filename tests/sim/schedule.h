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
    size_t place = acts_.size();
    if (free_.empty()) {
      acts_.push_back(std::move(act));
    } else {
      place = free_.back();
      free_.pop_back();
      acts_[place] = std::move(act);
    }
    events_.push({std::max(at, now_), ++last_, place});
  }
  void After(absl::Duration wait, std::function<void()> act) { At(now_ + wait, std::move(act)); }

  // Lets the next thing happen; false: nothing does before `until`, which it is then.
  bool Step(absl::Time until) {
    if (events_.empty() || events_.top().at > until) {
      now_ = until;
      return false;
    }
    const Event next = events_.top();
    events_.pop();
    const std::function<void()> act = std::exchange(acts_[next.place], nullptr);
    free_.push_back(next.place);
    now_ = next.at;
    ++steps_;
    act();
    return true;
  }

 private:
  // What the queue moves about is small: a large fleet has tens of thousands of events ahead.
  struct Event {
    absl::Time at;
    uint64_t order;
    size_t place;  // In `acts_`.
    bool operator<(const Event& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };

  const absl::Time began_ = absl::FromUnixSeconds(1'800'000'000);
  absl::Time now_ = began_;
  uint64_t last_ = 0;
  uint64_t steps_ = 0;
  std::priority_queue<Event> events_;
  std::vector<std::function<void()>> acts_;
  std::vector<size_t> free_;  // The places in `acts_` of what has happened.
};

// A clock of one machine: it may be ahead of or behind the schedule's, and go faster or slower.
class MachineClock final : public os::Clock {
 public:
  // Borrows `schedule`. It shows `ahead` more than the schedule's clock now, and gains `drift` of
  // each second from there.
  MachineClock(const Schedule& schedule, absl::Duration ahead, double drift)
      : schedule_(schedule), since_(schedule.now()), ahead_(ahead), rate_(1 + drift) {}

  // A process asks many times in one step; what it is told is computed once.
  absl::Time Now() const override {
    if (asked_ != schedule_.now()) {
      asked_ = schedule_.now();
      shown_ = since_ + ahead_ + (asked_ - since_) * rate_;
    }
    return shown_;
  }
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
  mutable absl::Time asked_ = absl::InfinitePast();  // The schedule's time of `shown_`.
  mutable absl::Time shown_;
};

// One wake-up of an actor: the earliest that was asked for, and no other. Not thread-safe.
class Alarm {
 public:
  // `act` is called at each wake-up. Borrows `schedule`, and must outlive its run: whoever owns it
  // keeps `act` from doing anything once the actor is dead.
  Alarm(Schedule& schedule, std::function<void()> act)
      : schedule_(schedule), act_(std::move(act)) {}
  Alarm(const Alarm&) = delete;  // What is on the schedule points to it.
  Alarm& operator=(const Alarm&) = delete;

  // Has it go off at `at`, unless an earlier time was asked for and has not come yet.
  void Set(absl::Time at) {
    at = std::max(at, schedule_.now());
    if (at >= next_ || at == absl::InfiniteFuture()) return;
    next_ = at;
    schedule_.At(at, [this] {
      if (next_ != schedule_.now()) return;  // An earlier time was asked for since.
      next_ = absl::InfiniteFuture();
      act_();
    });
  }

 private:
  Schedule& schedule_;
  const std::function<void()> act_;
  absl::Time next_ = absl::InfiniteFuture();
};

}  // namespace spoke::sim
