// What follows when an agent has been asked for addresses. Pure.
#pragma once

#include "absl/time/time.h"
#include "ipam-server/ledger/effects.h"
#include "ipam-server/ledger/fleet.h"
#include "ipam-server/ledger/node_record.h"
#include "lib/node_api/desired.h"

namespace spoke::ipam {

// What it agrees to is detached; what it denies it is not asked for again for a while. The caller
// has made sure that it answers a request of the present session.
Effects OnReclaimAnswer(Fleet& fleet, const NodeKey& key, const node_api::ReclaimAnswer& answer,
                        absl::Time now);

}  // namespace spoke::ipam
