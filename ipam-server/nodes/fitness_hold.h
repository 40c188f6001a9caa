// Makes a steady verdict of what is seen of a node from moment to moment, so that a node that flaps
// is not written about each time. Pure.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "ipam-server/nodes/fitness.h"

namespace spoke::ipam {

// How long something has to be so before it counts.
struct HoldTimes {
  // An agent that is replaced, or a server that is, is back within a minute or two.
  absl::Duration unfit = absl::Minutes(5);
  absl::Duration fit = absl::Seconds(30);
  absl::Duration exhausted = absl::Minutes(1);
  absl::Duration room = absl::Seconds(30);
  // For how long a node that joins is left without a condition that says it is not ready: most are
  // ready before, and need one write less.
  absl::Duration joining = absl::Minutes(1);
  // Each time that a node has become unfit within `flaps_of`, the time to become fit again doubles,
  // up to `longest`.
  absl::Duration flaps_of = absl::Hours(1);
  absl::Duration longest = absl::Minutes(30);

  bool operator==(const HoldTimes&) const = default;
};

// What counts now. The verdicts are nullopt as long as neither has been so for its time.
struct HeldFitness {
  std::optional<bool> ready;
  std::optional<bool> exhausted;
  Fitness latest;
  absl::Time since;  // Since when `latest.ready` is as it is.
};

// One node's. Not thread-safe.
class FitnessHold {
 public:
  // Takes what is seen at `now`. `joining`: it has the taint that the kubelet gave; a node that was
  // never seen without becomes fit at once.
  HeldFitness Observe(const Fitness& seen, bool joining, const HoldTimes& times, absl::Time now);

 private:
  absl::Duration TimeToFit(const HoldTimes& times) const;

  std::optional<Fitness> latest_;
  absl::Time ready_since_;
  absl::Time exhausted_since_;
  bool joined_ = false;           // It was fit once, or is without that taint.
  bool counts_fit_ = false;       // It has been fit for its time, and is since.
  bool counts_unfit_ = false;     // Likewise, until it is fit for its time again.
  std::deque<absl::Time> flaps_;  // When it became unfit, within HoldTimes::flaps_of; at most 8.
};

}  // namespace spoke::ipam
