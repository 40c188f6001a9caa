// Which claims of policy objects clash. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "ipam-server/policy/objects/object.h"

namespace spoke::ipam {

// A claim and whose it is. Borrows the claim.
struct OwnedClaim {
  const Claim* claim;
  size_t owner;  // Grows in the order in which objects were given: a clash is laid to the later.
};

// Two claims that meet and do not share. `later` is that of the later owner, or of the later line
// when one object clashes with itself.
struct Clash {
  OwnedClaim earlier;
  OwnedClaim later;
};

// Returns at most one clash for each claim that does not fit to those before it, and none exactly
// when the claims are compatible. Takes n log n steps.
std::vector<Clash> FindClashes(std::span<const OwnedClaim> claims);

}  // namespace spoke::ipam
