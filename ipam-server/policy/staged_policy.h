// A change of policy as a whole, in stores that cannot store all of it at once: what the objects
// are to be is stored beside them first, then the policy's version, which puts it in force, and
// then the objects themselves. Whoever finds the version but not all objects finishes the change.
//
// Records: policy/pending/<version>/<key of the object> with what the object's record is to hold;
// nothing in it: the object goes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "ipam-server/store/store.h"

namespace spoke::ipam {

// The revision of each record, by its key.
using Revisions = absl::flat_hash_map<std::string, int64_t>;

inline constexpr std::string_view kPendingPolicyPrefix = "policy/pending/";

// Prepares the policy's records of a commit, from `puts[first]` on and to the end: a few are joined
// in one transaction; more become stages, with pending records. Pending records of earlier changes
// that `revisions` names are removed. Does nothing where the policy's version is not written.
void StagePolicy(std::vector<CompareAndPut>& puts, size_t first, const Revisions& revisions);

// Finishes a change that is in force and of which not all objects are stored; call before objects
// are read. Writes nothing where there is none. Errors: as Store::List() and Store::Commit();
// kDataLoss (the record of the version).
absl::Status FinishPolicy(Store& store);

}  // namespace spoke::ipam
