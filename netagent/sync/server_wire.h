// Messages of the wire to values of core/ and back. Pure.
#pragma once

#include "absl/status/statusor.h"
#include "netagent/core/server_messages.h"
#include "netagent/kernel/router.h"
#include "proto/spoke/v1/node.pb.h"

namespace spoke::netagent {

v1::Hello HelloToWire(const NodeIdentity& identity, const Greeting& greeting, const Nic& nic);
v1::LendingReport ReportToWire(const LendingReport& report);

// Blocks of addresses are taken apart into single ones. Errors: kInvalidArgument (an address or
// length that cannot be, or blocks of more than kMaxAddresses addresses in all).
inline constexpr uint64_t kMaxAddresses = 8192;
absl::StatusOr<DesiredState> FromWire(const v1::DesiredState& in);

}  // namespace spoke::netagent
