// Messages of the wire to values of core/ and back. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "netagent/links/links.h"
#include "netagent/session/server_messages.h"
#include "proto/spoke/v1/node.pb.h"

namespace spoke::netagent {

v1::Hello HelloToWire(const NodeIdentity& identity, const Greeting& greeting, const Nic& nic);
v1::AgentMessage ToWire(const AgentReply& reply);

// What the agent has to act upon; nullopt: a message that asks for nothing (Welcome, ReportAck, or
// what only a newer agent knows). Blocks of addresses in a DesiredState are taken apart into single
// ones; a policy is taken as it is, since it has an answer that can say what is wrong with it.
// Errors: kInvalidArgument (an address or length that cannot be, or blocks of more than
// kMaxAddresses addresses in all).
inline constexpr uint64_t kMaxAddresses = 8192;
absl::StatusOr<std::optional<ServerRequest>> FromWire(const v1::ServerMessage& in);
absl::StatusOr<DesiredState> FromWire(const v1::DesiredState& in);
absl::StatusOr<ReclaimRequest> FromWire(const v1::ReclaimRequest& in);
// Never fails: a reason that is too long is cut, an ETA is kept within a day.
Forecast FromWire(const v1::Forecast& in);
// Never fails: a rate is kept within kMaxGrantedRate. Bits a second.
inline constexpr uint64_t kMaxGrantedRate = 1'000'000'000'000'000;
BudgetGrants FromWire(const v1::BudgetGrants& in);
// Errors: kInvalidArgument (a target that is none, more than kMaxProbeTargets). A timeout is kept
// within kMaxProbeTimeout.
inline constexpr int kMaxProbeTargets = 64;
inline constexpr absl::Duration kMaxProbeTimeout = absl::Seconds(5);
absl::StatusOr<ProbeRequest> FromWire(const v1::ProbeRequest& in);

}  // namespace spoke::netagent
