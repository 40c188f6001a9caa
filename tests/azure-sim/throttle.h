// Azure's request limits: Compute's buckets, Network's windows and ARM's front door. Pure; not
// thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "tests/azure-sim/knobs.h"

namespace spoke::azure_sim {

enum class Direction : uint8_t { kRead, kWrite, kDelete };

// The answer of a limit about one call.
struct Grant {
  bool allowed = true;
  std::string limit;           // The limit that refused: "UpdateVMScaleSetVMsResource".
  absl::Duration retry_after;  // The wait in whole seconds.
  double limit_most = 0;
  double measured = 0;  // The calls in the running interval, this one included.
  absl::Time interval_start;
  absl::Time interval_end;
  // The remainder of each limit that was asked.
  std::vector<std::pair<std::string, int64_t>> remaining;
};

class Throttle {
 public:
  // `limits` is borrowed and read at each call: it may change meanwhile.
  explicit Throttle(const Limits& limits) : limits_(limits) {}

  // The scope that a provider counts together: the subscription and region, and the one resource;
  // the latter is empty for calls such as lists.
  struct Scope {
    std::string_view subscription;
    std::string_view region;
    std::string_view resource;
  };

  // Takes `units` from the provider's limits, or nothing when one of them has too few.
  Grant AskProvider(Policy policy, const Scope& scope, double units, absl::Time now);

  // Takes one from the principal's bucket and from the one that all principals share.
  Grant AskFrontDoor(std::string_view subscription, std::string_view principal, Direction direction,
                     absl::Time now);

  // Returns the calls that came before the Retry-After of the last refusal had passed.
  uint64_t sent_into_closed_gate() const { return sent_into_closed_gate_; }

 private:
  struct State {
    double tokens = -1;  // The tokens; below 0: never used.
    int64_t interval = 0;
    absl::Time last;  // The time when a continuous bucket was last filled.
    double measured = 0;
    absl::Time closed_until = absl::InfinitePast();
  };
  struct Step {
    absl::Duration length;
    absl::Duration phase;
  };

  Grant AskStepwise(Policy policy, const Scope& scope, double units, absl::Time now);
  static void Refill(State* state, const Bucket& bucket, const Step& step, absl::Time now);
  void RefillContinuously(State* state, double per_second, double most, absl::Time now);
  // Counts a call that did not wait, and keeps what it is told now.
  void Close(State* state, absl::Duration retry_after, absl::Time now);

  const Limits& limits_;
  std::unordered_map<std::string, State> states_;
  uint64_t sent_into_closed_gate_ = 0;
};

}  // namespace spoke::azure_sim
