// Translates between the agent's values and what the programs of the fast path go by (layout.h).
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/ip/address.h"
#include "netagent/fastpath/fast_hop.h"
#include "netagent/fastpath/layout.h"

namespace spoke::netagent {

// Returns the table as the programs have it; `uplink` is the device's index. Errors:
// kInvalidArgument (too many hops; two families in one).
absl::StatusOr<spoke_table> ToLayout(const FastPathTable& table, uint32_t uplink);

// Returns the addresses of the pod in a slot.
std::vector<ip::Address> AddressesOf(const spoke_slot& pod);
void SetWayAndMac(PodWay way, const std::optional<ip::MacAddress>& mac, spoke_slot& slot);

}  // namespace spoke::netagent
