// Records to bytes and back (proto/spoke/v1/record.proto), whatever version wrote them. Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "ipam-server/ledger/node_record.h"
#include "ipam-server/ledger/quarantine.h"
#include "ipam-server/ledger/recovery.h"
#include "ipam-server/release/breaker.h"
#include "ipam-server/reservations/reservation.h"

namespace spoke::ipam {

inline constexpr std::string_view kNodeKeyPrefix = "node/";
inline constexpr std::string_view kQuarantineKeyPrefix = "quarantine/";
inline constexpr std::string_view kReservationKeyPrefix = "reservation/";
inline constexpr std::string_view kBreakerKey = "breaker";
inline constexpr std::string_view kStoreKey = "store";

// Returns "node/<name>/<vm id>", and so on.
std::string StoreKeyOf(const NodeKey& key);
std::string QuarantineKeyOf(const ip::Address& address);
std::string ReservationKeyOf(const std::string& name);

std::string EncodeNode(const NodeRecord& record);
std::string EncodeQuarantine(const ip::Address& address, const Quarantine& quarantine);
std::string EncodeReservation(const Reservation& reservation);
std::string EncodeBreaker(const BreakerState& state);
std::string EncodeStore(const RecoveryState& state);

// Errors of all: kDataLoss (not a record of ours, or one that breaks an invariant; the message
// says which).
absl::StatusOr<NodeRecord> DecodeNode(std::string_view bytes);
absl::StatusOr<std::pair<ip::Address, Quarantine>> DecodeQuarantine(std::string_view bytes);
absl::StatusOr<Reservation> DecodeReservation(std::string_view bytes);
absl::StatusOr<BreakerState> DecodeBreaker(std::string_view bytes);
absl::StatusOr<RecoveryState> DecodeStore(std::string_view bytes);

// Returns the store's own record as a backup has it. Whoever starts a server on that finds a store
// that nodes may know more than, though nobody else tells: its mark may have been restored as well,
// and whoever was told more be away.
absl::StatusOr<std::string> MarkedAsBackup(std::string_view bytes);

}  // namespace spoke::ipam
