// The pairs of addresses between which connections are translated, as the programs of the fast path
// learn them (programs.bpf.c), and each pod's share of the room for them.
#pragma once

#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "lib/os/unique_fd.h"
#include "netagent/fastpath/layout.h"

namespace spoke::netagent {

// Returns the time by the clock of pairs, in nanoseconds.
uint64_t PairClockNs();

// The maps of an earlier agent whose layout was another, whatever their type. Owns the descriptors;
// one is invalid where the agent had no such map.
struct FormerPairs {
  os::UniqueFd v4;
  os::UniqueFd v6;
};

// The descriptors of the maps, borrowed. Pods are named by their slot.
struct TranslatedPairs {
  // Notes that a pod is new in the slot. Errors: kInternal.
  absl::Status Begin(uint32_t slot) const;

  // Returns whether a pair of the pod was not remembered, so that it must keep to the ordinary way.
  bool IsOverShare(uint32_t slot) const;

  // Remembers the pairs of an earlier agent besides those that are known, and counts those of
  // `pods`. A pod that has one for which no room is left is over its share. Errors: kInternal.
  absl::Status TakeOver(const FormerPairs& former,
                        const std::map<uint32_t, spoke_slot>& pods) const;

  // Forgets pairs between which nothing translated has passed for `age`, or since a pod at one end
  // began, and those with no pod of `pods` at an end that has not ended. Counts the others anew.
  // Errors: kInternal.
  absl::Status Sweep(absl::Duration age, const std::map<uint32_t, spoke_slot>& pods) const;

  int v4 = -1;
  int v6 = -1;
  int counts = -1;
  int over_share = -1;
};

}  // namespace spoke::netagent
