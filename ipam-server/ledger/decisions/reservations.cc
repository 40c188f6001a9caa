#include "ipam-server/ledger/decisions/reservations.h"

#include <utility>
#include <vector>

#include "ipam-server/ledger/decisions/inventory.h"
#include "ipam-server/ledger/promises.h"
#include "lib/base/status.h"

namespace spoke::ipam {

absl::StatusOr<Effects> Reserve(Fleet& fleet, const ReservationRequest& request, absl::Time now,
                                bool dry_run) {
  RETURN_IF_ERROR(CheckNotHeld(fleet));
  const CapacityView view = CapacityOf(fleet, request.nodes);
  ASSIGN_OR_RETURN(Reservation reservation, fleet.reservations.Plan(request, view, now));
  Effects effects;
  if (dry_run) return effects;
  std::vector<std::string> nodes;
  for (const auto& [node, missing] : reservation.missing) nodes.push_back(node);
  effects.reservations.insert(reservation.name);
  fleet.reservations.Add(std::move(reservation), view);
  for (const std::string& name : nodes) {
    if (const NodeRecord* record = FindByName(fleet.ledger, name); record != nullptr) {
      effects.plan.insert(record->key);
    }
  }
  return effects;
}

absl::StatusOr<Effects> EndReservation(Fleet& fleet, const std::string& name) {
  RETURN_IF_ERROR(fleet.reservations.Release(name).status());
  Effects effects;
  effects.reservations.insert(name);
  return effects;
}

void ClaimReserved(Fleet& fleet, const NodeRecord& record, Effects& effects) {
  if (fleet.reservations.all().empty()) return;
  const auto name =
      fleet.reservations.OnNodeJoined(record.key.name, CapacityOf(fleet, {record.key.name}));
  if (name) effects.reservations.insert(*name);
}

}  // namespace spoke::ipam
