// Reservations: what operators promise to nodes, and who has a claim on it. Pure.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ipam-server/ledger/effects.h"
#include "ipam-server/ledger/fleet.h"
#include "ipam-server/ledger/node_record.h"
#include "ipam-server/reservations/reservation.h"

namespace spoke::ipam {

// Errors: as ReservationBook::Plan(); kFailedPrecondition (a recovery is under way). With `dry_run`
// nothing changes, whatever the answer. The addresses are promised with this; PlanNode() of its
// nodes assigns them.
absl::StatusOr<Effects> Reserve(Fleet& fleet, const ReservationRequest& request, absl::Time now,
                                bool dry_run);
// Errors: kNotFound.
absl::StatusOr<Effects> EndReservation(Fleet& fleet, const std::string& name);

// A node that is new takes a place of a reservation for nodes that join, if there is one.
void ClaimReserved(Fleet& fleet, const NodeRecord& record, Effects& effects);

}  // namespace spoke::ipam
