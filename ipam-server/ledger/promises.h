// What is promised of the pools to reservations, and what that leaves. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ipam-server/ledger/fleet.h"
#include "ipam-server/ledger/node_record.h"
#include "ipam-server/reservations/reservation.h"

namespace spoke::ipam {

// Whether a view says what each node holds, for which its addresses are gone through. Without it
// the view is enough for ReservationBook::OnPoolsChanged().
enum class Holdings { kCounted, kLeftOut };

// Returns what the reservations have to know of the pools and of these nodes; of an unknown node it
// says nothing. It borrows the pools' names.
CapacityView CapacityOf(const Fleet& fleet, const std::vector<std::string>& nodes,
                        Holdings holdings = Holdings::kCounted);

// Returns how many addresses of the pool the node may take. What is promised to a reservation is
// only for the nodes it names.
uint64_t FreeFor(const Fleet& fleet, const NodeRecord& record, size_t pool);

Promises AllPromises(const Fleet& fleet);
// Returns how many of the pool's free addresses are promised.
uint64_t PromisedOf(const Fleet& fleet, const std::string& pool);

}  // namespace spoke::ipam
