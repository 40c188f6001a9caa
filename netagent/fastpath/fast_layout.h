// Translates the agent's table of hops into the one that the programs of the fast path go by
// (layout.h). Pure.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "netagent/fastpath/fast_hop.h"
#include "netagent/fastpath/layout.h"

namespace spoke::netagent {

// Returns the table as the programs have it; `uplink` is the device's index. Errors:
// kInvalidArgument (too many hops; two families in one).
absl::StatusOr<spoke_table> ToLayout(const FastPathTable& table, uint32_t uplink);

}  // namespace spoke::netagent
