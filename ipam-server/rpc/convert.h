// Messages of the wire to values of core/ and back. Pure. What an agent sends is checked here: a
// field that cannot be is an error, and an unknown one is none.
#pragma once

#include "absl/status/statusor.h"
#include "ipam-server/core/agent_messages.h"
#include "ipam-server/core/fleet.h"
#include "ipam-server/core/session.h"
#include "proto/spoke/v1/admin.pb.h"
#include "proto/spoke/v1/node.pb.h"

namespace spoke::ipam {

// Errors: kInvalidArgument; the message names the field and the node.
absl::StatusOr<Hello> FromWire(const v1::Hello& in);
absl::StatusOr<LendingReport> FromWire(const v1::LendingReport& in);

v1::ServerMessage ToWire(const ToAgent& message, std::string_view server_version);

v1::PoolInfo DescribePool(const Fleet& fleet, const AddressPool& pool);
v1::NodeInfo DescribeNode(const Fleet& fleet, const NodeRecord& record, const Session* session);
v1::AddressInfo DescribeAddress(const NodeRecord& record, const ip::Address& address,
                                const HeldAddress& held);

}  // namespace spoke::ipam
