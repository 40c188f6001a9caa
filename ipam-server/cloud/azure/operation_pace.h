// How long Azure's operations take, learned from those that are over. Pure.
#pragma once

#include "absl/time/time.h"

namespace spoke::ipam::azure {

// Polls are calls of a scarce kind: the first is best made when most operations are done. Follows
// the time after which `kDoneAtFirstPoll` of them are. Not thread-safe.
class OperationPace {
 public:
  static constexpr double kDoneAtFirstPoll = 0.85;

  absl::Duration first_poll() const { return first_poll_; }
  // The wait after a poll that found the operation running; grows with `polls` so far.
  absl::Duration NextPoll(int polls) const;
  void OnFirstPoll(bool done);

 private:
  absl::Duration first_poll_ = absl::Seconds(20);
};

}  // namespace spoke::ipam::azure
