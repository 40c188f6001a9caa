// Checks whether tables can be shaped by, and says what they come to. Pure.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "netagent/classes/address_ranges.h"
#include "netagent/shaping/shaping_tables.h"

namespace spoke::netagent {

// The deepest tree that tc-htb(8) has.
inline constexpr int kMaxTreeDepth = 8;

// Refuses all that Shaper::Apply() promises to refuse, except for what ScopeBlocks() refuses.
// Errors: kInvalidArgument.
absl::Status CheckShapingTables(const ShapingTables& tables);

// Returns the blocks, sorted, each once, so that the longest one which holds an address has its
// scope: learned addresses win. Errors: kInvalidArgument (a range that ends before it begins or of
// two families; two ranges of `scopes` that overlap; more than one address learned at once; more
// blocks than kMaxShapedPrefixes).
absl::StatusOr<std::vector<AddressBlock<ClassNumber>>> ScopeBlocks(const ShapingTables& tables);

}  // namespace spoke::netagent
