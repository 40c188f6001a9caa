// The mass-release breaker: when one pass would free a large share of all addresses, or a source of
// truth suddenly shrank, releases freeze until an operator has looked. Pure.
//
// A wrong answer of the cloud, a bug of ours or a slip of the hand must not take the addresses from
// pods that are running: what is frozen too long costs addresses, what is freed wrongly costs jobs.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"

namespace spoke::ipam {

struct BreakerPolicy {
  // The share of all attached addresses that may be freed within `window`. 1 turns the breaker off.
  double share = 0.05;
  // Addresses that may go within `window` however small the cluster; but never all there are.
  uint64_t floor = 32;
  // Entries that a listing may lose from one time to the next however short it is: that one VM
  // leaves a small cluster is nothing special. But never all.
  uint64_t source_floor = 3;
  absl::Duration window = absl::Minutes(10);

  bool operator==(const BreakerPolicy&) const = default;
};

// What has to outlive the process. Plain, so that it can be stored.
struct BreakerState {
  // So many addresses, or a source that fell to so many entries.
  struct Refused {
    uint64_t addresses = 0;
    std::string source;
    uint64_t source_count = 0;

    bool operator==(const Refused&) const = default;
  };
  struct Freeze {
    absl::Time since;
    std::string reason;
    Refused refused;

    bool operator==(const Freeze&) const = default;
  };
  // What an operator has looked at and let pass, for one window from `since`, which is the time of
  // the unfreeze.
  struct Pardon {
    absl::Time since;
    std::string reason;  // Why it had been refused.
    Refused refused;     // Its addresses are those that may still go.
    uint64_t drawn =
        0;  // The addresses that have gone on this pardon, and those before in its window.

    bool operator==(const Pardon&) const = default;
  };
  struct Freed {
    absl::Time at;  // The end of the slice of time it stands for.
    uint64_t addresses = 0;

    bool operator==(const Freed&) const = default;
  };

  std::optional<Freeze> freeze;
  std::optional<Pardon> pardon;
  std::deque<Freed> freed;  // Oldest first, within the window, without what a pardon let go; <= 62.
  uint64_t trips = 0;       // How often it froze, ever.

  bool operator==(const BreakerState&) const = default;
};

// Not thread-safe; the loop that releases owns it.
class MassReleaseBreaker {
 public:
  struct Verdict {
    bool allowed = false;
    std::string reason;  // When not allowed: the numbers, and what to do.
  };

  explicit MassReleaseBreaker(const BreakerPolicy& policy, BreakerState state = {});

  // Judges whether one pass may free `would_free` of the addresses, of which `total_attached` are
  // attached before it. What is allowed counts as freed at once; what is more than may go anyway is
  // drawn from the pardon. What is not allowed freezes releases from now on; while they are frozen
  // nothing is allowed, and the reason stays that of the freeze.
  Verdict Judge(uint64_t total_attached, uint64_t would_free, absl::Time now);

  // Returns whether what Judge() allowed at `judged` still counts.
  bool Counts(absl::Time judged, absl::Time now) const;

  // Notes that `count` of those that Judge() allowed, and that still count, were not freed after
  // all: the agent denied.
  // They go back to the pardon first, so that a pass that was let go makes no room for others.
  void GiveBack(uint64_t count);

  // How many Judge() would allow now. A job that ended frees a large share for good reasons: the
  // loop that plans releases takes no more than this at a time, and so works it off without a
  // freeze.
  uint64_t Headroom(uint64_t total_attached, absl::Time now) const;

  // A listing of `source` ("the cloud's list of VMs") has `now_count` entries where the one before
  // had `previous`. Lost it more than the share, releases freeze, and the caller does not act on
  // it.
  Verdict SourceShrank(std::string_view source, uint64_t previous, uint64_t now_count,
                       absl::Time now);

  // How many of `previous` entries a source may lack before SourceShrank() freezes.
  uint64_t MayLack(uint64_t previous) const { return Allowance(previous, policy_.source_floor); }

  // Lifts the freeze, after an operator has looked: a new window begins, and in it as many
  // addresses as were refused may go beyond what may go anyway, for otherwise the same pass would
  // freeze again. What is left of a pardon of this window is added, and a source that was let pass
  // in it goes on being let pass. Returns why releases were frozen, or nullopt when they were not:
  // then nothing changes.
  std::optional<std::string> Unfreeze(absl::Time now);

  bool frozen() const { return state_.freeze.has_value(); }
  const BreakerState& state() const { return state_; }

 private:
  void Prune(absl::Time now);
  uint64_t FreedSince(absl::Time now) const;
  uint64_t Allowance(uint64_t total, uint64_t floor) const;
  bool Pardons(absl::Time now) const;
  Verdict Refuse(BreakerState::Freeze freeze);

  BreakerPolicy policy_;
  BreakerState state_;
};

}  // namespace spoke::ipam
