// What this node tries to connect to, by its policy. Pure.
#pragma once

#include <cstddef>

#include "lib/node_checks/services/reach_answers.h"
#include "netagent/policy/policy_bundle.h"

namespace spoke::netagent {

// The most targets of each kind that a node tries, of all ClusterNetworks together.
inline constexpr size_t kMaxReachTargets = 32;

// Returns the targets that the ClusterNetworks of `policy` name, sorted and each once; the first
// kMaxReachTargets of each kind.
node_checks::ReachTargets ReachTargetsOf(const Policy& policy);

}  // namespace spoke::netagent
