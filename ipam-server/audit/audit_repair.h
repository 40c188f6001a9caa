// How a difference that an audit has found is mended, where that is safe. No I/O.
#pragma once

#include <optional>

#include "absl/time/time.h"
#include "ipam-server/audit/audit.h"
#include "ipam-server/audit/audit_snapshot.h"
#include "ipam-server/ledger/effects.h"
#include "ipam-server/ledger/fleet.h"
#include "lib/node_api/assignments.h"

namespace spoke::ipam {

// One address as it was compared.
struct Compared {
  std::optional<StoredAddress> stored;             // nullopt: it was not the node's.
  std::optional<node_api::Assignment> assignment;  // What its agent said; nullopt: nothing.
};

// Returns what `snapshot`, in which the difference was found, has of its address.
Compared ComparedOf(const AuditDifference& difference, const AuditSnapshot& snapshot);

// Returns what mends it; nullopt: nothing that is safe does. An assignment that has moved on since
// it was compared is left alone: whatever is wrong with it now, the next audit finds.
std::optional<Effects> Repair(Fleet& fleet, const AuditDifference& difference,
                              const Compared& compared, absl::Time now);

}  // namespace spoke::ipam
