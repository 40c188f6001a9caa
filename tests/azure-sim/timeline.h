// The things that are to happen later, in the order of their time. Pure; not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "absl/time/time.h"

namespace spoke::azure_sim {

// A timeline. Nothing runs by itself: whoever knows the time says so. What falls on the same time
// runs in the order it was planned.
class Timeline {
 public:
  void At(absl::Time when, std::function<void(absl::Time)> what) {
    planned_.emplace(std::make_pair(when, next_++), std::move(what));
  }

  // Runs all that is due at `now`, what it plans itself included. The argument is the time it was
  // planned for.
  void RunUntil(absl::Time now) {
    while (!planned_.empty() && planned_.begin()->first.first <= now) {
      auto first = planned_.extract(planned_.begin());
      first.mapped()(first.key().first);
    }
  }

  // Returns when something happens next; infinite future: never.
  absl::Time next() const {
    return planned_.empty() ? absl::InfiniteFuture() : planned_.begin()->first.first;
  }

 private:
  std::map<std::pair<absl::Time, uint64_t>, std::function<void(absl::Time)>> planned_;
  uint64_t next_ = 0;
};

}  // namespace spoke::azure_sim
