// What is going to happen in the simulated world, in the order of its one true time. Events of one
// moment happen in the order in which they were scheduled.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "absl/time/time.h"

namespace spoke::sim {

// Not thread-safe.
class Schedule {
 public:
  using Event = std::function<void()>;

  absl::Time now() const { return now_; }
  uint64_t events() const { return happened_; }

  void At(absl::Time when, Event event) {
    events_.emplace(std::pair(std::max(when, now_), ++last_), std::move(event));
  }
  void After(absl::Duration wait, Event event) { At(now_ + wait, std::move(event)); }

  // Forgets all that was to happen.
  void Clear() { const auto dropped = std::exchange(events_, {}); }
  // Lets the next event happen if it does before `end`; false: there is none, and it is `end`.
  bool Step(absl::Time end) {
    if (events_.empty() || events_.begin()->first.first >= end) {
      now_ = std::max(now_, end);
      return false;
    }
    auto next = events_.extract(events_.begin());
    now_ = next.key().first;
    ++happened_;
    next.mapped()();
    return true;
  }

 private:
  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
  uint64_t last_ = 0;
  uint64_t happened_ = 0;
  std::map<std::pair<absl::Time, uint64_t>, Event> events_;
};

}  // namespace spoke::sim
