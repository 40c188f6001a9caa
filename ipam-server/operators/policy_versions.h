// What policy objects were before each of the last changes, so that operators can go back. A
// version's pieces are stored with the change that made the version, and have what it changed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ipam-server/policy/object_codec.h"
#include "ipam-server/policy/objects/object_set.h"
#include "ipam-server/store/store.h"

namespace spoke::ipam {

// Returns what has to be stored for `plan`, which changes the objects of version `before`, to be
// undone: pieces that are each well below what a store takes at once. Nothing when it changes
// nothing. Pure.
std::vector<PolicyWrite> EncodeFormer(const ApplyPlan& plan, uint64_t before);

// The way back from the present objects to those of an earlier version.
struct WayBack {
  ParsedFiles objects;          // To be applied, as if they came from files.
  std::vector<ObjectKey> gone;  // Objects that did not exist then.
};

// Returns the way from version `from`, the present one, to `to`; 0: the version before it. Errors:
// kFailedPrecondition (that version is not kept, or none; the message has those that are), as
// Store::List(), kDataLoss (a damaged record).
absl::StatusOr<WayBack> FindWayBack(Store& store, uint64_t from, uint64_t to);

// Returns the versions that there is a way back to from `from`, newest first. Errors: as above.
absl::StatusOr<std::vector<uint64_t>> VersionsToGoBackTo(Store& store, uint64_t from);

}  // namespace spoke::ipam
