// The kind Pool: a subnet whose addresses nodes get. Server-only: agents hear of pools by what they
// are given. Pure.
#pragma once

#include <vector>

#include "ipam-server/policy/objects/object.h"
#include "ipam-server/policy/objects/object_set.h"
#include "ipam-server/pools/address_pool.h"

namespace spoke::ipam {

// The pools of the set, by name.
std::vector<PoolSpec> PoolsOf(const ObjectSet& set);

// The pool of the object; nullptr when it is of another kind.
const PoolSpec* PoolOf(const PolicyObject& object);

// A pool of the server's configuration as an object, for PolicyWorld::configured.
PolicyObject ConfiguredPool(const PoolSpec& spec);

}  // namespace spoke::ipam
