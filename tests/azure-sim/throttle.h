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

// What a limit said about one call.
struct Grant {
  bool allowed = true;
  std::string limit;           // The one that refused: "UpdateVMScaleSetVMsResource".
  absl::Duration retry_after;  // Whole seconds.
  double limit_most = 0;
  double measured = 0;  // Calls in the running interval, this one included.
  absl::Time interval_start;
  absl::Time interval_end;
  std::vector<std::pair<std::string, int64_t>> remaining;  // Of each limit that was asked.
};

class Throttle {
 public:
  // `limits` is borrowed and read at each call: it may change meanwhile.
  explicit Throttle(const Limits& limits) : limits_(limits) {}

  // What a provider counts together: the subscription and region, and the one resource; the latter
  // is empty for calls such as lists.
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

  // Calls that came before the Retry-After of the last refusal had passed.
  uint64_t sent_into_closed_gate() const { return sent_into_closed_gate_; }

 private:
  struct State {
    double tokens = -1;  // Below 0: never used.
    int64_t interval = 0;
    absl::Time last;  // Continuous buckets: when it was last filled.
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
