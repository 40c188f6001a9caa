// The pairs of addresses between which connections are translated, as the programs of the fast path
// learn them (programs.bpf.c), and each pod's share of the room for them.
#pragma once

#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "netagent/fastpath/layout.h"

namespace spoke::netagent {

// The descriptors of the maps, borrowed. Pods are named by their slot.
struct TranslatedPairs {
  // A pod is new in the slot. Errors: kInternal.
  absl::Status Begin(uint32_t slot) const;

  // Whether a pair of the pod was not remembered, so that it must keep to the ordinary way.
  bool IsOverShare(uint32_t slot) const;

  // Remembers the pairs that the program with this id knows, whatever the type of its maps, and
  // counts those of `pods`. Errors: kResourceExhausted, kInternal.
  absl::Status TakeOver(uint32_t program_id, const std::map<uint32_t, spoke_slot>& pods) const;

  // Forgets pairs between which nothing translated has passed for `age`, and counts the others
  // anew. Errors: kInternal.
  absl::Status Sweep(absl::Duration age, const std::map<uint32_t, spoke_slot>& pods) const;

  int v4 = -1;
  int v6 = -1;
  int counts = -1;
  int over_share = -1;
};

}  // namespace spoke::netagent
