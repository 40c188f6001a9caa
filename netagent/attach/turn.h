// One turn of the agent's loop. Rounds that take milliseconds on a full node (repair, the look at
// the tables, the report) fall due together, since they began together; one a turn, so that a pod
// or a policy that comes meanwhile waits for one of them and not for all.
#pragma once

#include "absl/time/time.h"

namespace spoke::netagent {

// A value of one turn. Not thread-safe.
class Turn {
 public:
  // `first`: the earliest moment at which any of them wants to wake.
  Turn(absl::Time now, absl::Time first) : now_(now), first_(first) {}

  // Whether what wants to wake at `next_wake` is called in this turn: always when it is not due,
  // since then it is quick; otherwise only when it has waited longest. What is turned away is still
  // due, so the next turn comes at once.
  bool Admits(absl::Time next_wake) {
    if (next_wake > now_) return true;
    if (taken_ || next_wake > first_) return false;
    taken_ = true;
    return true;
  }

 private:
  absl::Time now_;
  absl::Time first_;
  bool taken_ = false;
};

}  // namespace spoke::netagent
