// The state as operators see it. Pure.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "ipam-server/ledger/fleet.h"
#include "ipam-server/ledger/recovery.h"
#include "ipam-server/loop/fleet_loop.h"
#include "proto/spoke/v1/admin.pb.h"

namespace spoke::ipam {

// Counts the addresses of all pools, each family for itself: a subnet of IPv6 has more addresses
// than all of IPv4.
void DescribeFamilies(const Fleet& fleet, v1::GetStatusResponse& out);

v1::PoolInfo DescribePool(const Fleet& fleet, const PoolEntry& entry);

// Whether the cloud has refused the last change of the node's NIC. Another attempt heals nothing,
// so no time can be said at which the change is done.
bool RefusesCloud(const FleetView& view, const NodeKey& node);

// Counts the attached addresses of the node that no pod gets: they are in quarantine or off the
// NIC.
uint64_t CountWithheld(const Fleet& fleet, const NodeRecord& record);

v1::NodeInfo DescribeNode(const FleetView& view, const NodeRecord& record);

v1::AddressInfo DescribeAddress(const Fleet& fleet, const NodeRecord& record,
                                const Configuration& configuration, const ip::Address& address);
// Describes an address in any state; nullopt when it is in none of the pools.
std::optional<v1::AddressInfo> DescribeAddress(const Fleet& fleet, const ip::Address& address);
// What the node holds, and what left it and is still in cooldown.
std::vector<v1::AddressInfo> DescribeAddresses(const Fleet& fleet, const NodeRecord& record);

// The order in which rows of DescribeAddresses(), of all nodes one after the other, are shown: by
// address. A deque, since they are added on the loop's thread and must not have to move. An
// address that moved to another node meanwhile, and is in two rows, is shown by the later only.
std::vector<size_t> RowsByAddress(const std::deque<v1::AddressInfo>& rows);

v1::ReservationInfo DescribeReservation(const Reservation& reservation);

// How a recovery stands (ledger/recovery.h).
v1::RecoveryInfo DescribeRecovery(const Fleet& fleet, const Recovery& recovery);

}  // namespace spoke::ipam
