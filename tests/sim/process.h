// What a process of the fleet still does once it is to die: nothing.
#pragma once

#include "absl/time/time.h"

namespace spoke::sim {

// The life of one process. Everything that it does to the world passes here, so that it can be
// ended between any two of its acts. Not thread-safe.
class Life {
 public:
  // Whether the process may do one thing more. After the last of those that were left it is dead.
  bool Acts() {
    if (dead_) return false;
    if (acts_left_ == 0) dead_ = true;
    if (acts_left_ > 0) --acts_left_;
    return !dead_;
  }
  // The process does `acts` things more, and dies before the next one; negative: it lives on.
  void DieAfter(int acts) { acts_left_ = acts; }
  void Die() { dead_ = true; }
  bool dead() const { return dead_; }
  // Until then the process stands still, as when its machine is suspended: it does nothing and
  // hears nothing, and goes on as if no time had passed. Its owner sees to that.
  void StandStillUntil(absl::Time until) { still_until_ = until; }
  absl::Time still_until() const { return still_until_; }

 private:
  int acts_left_ = -1;  // Negative: it lives on.
  bool dead_ = false;
  absl::Time still_until_ = absl::InfinitePast();
};

}  // namespace spoke::sim
