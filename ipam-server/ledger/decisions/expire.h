// What time alone ends. Pure.
#pragma once

#include "absl/time/time.h"
#include "ipam-server/ledger/effects.h"
#include "ipam-server/ledger/fleet.h"

namespace spoke::ipam {

// Ends reservations, quarantines and cooldowns whose time is over, and forgets nodes that left
// nothing; of what may be due for many nodes at once, a part. It is to be called some times a
// second.
Effects Expire(Fleet& fleet, absl::Time now);

}  // namespace spoke::ipam
