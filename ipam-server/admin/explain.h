// Answers to operators' questions, from the state as it is. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "ipam-server/ledger/fleet.h"
#include "ipam-server/loop/fleet_loop.h"
#include "proto/spoke/v1/admin.pb.h"

namespace spoke::ipam {

// Why a pod, a node or an address is as it is. Errors: kInvalidArgument (not just one subject, or
// one that cannot be); kNotFound.
absl::StatusOr<v1::ExplainResponse> ExplainSubject(const FleetView& view,
                                                   const v1::ExplainRequest& request);

// Returns the node whose own address it is; nullptr: no connected one's.
const NodeKey* OwnAddressOf(const FleetView& view, const ip::Address& address);

// Whether so many more nodes with so many pods each would fit: pools, virtual network, NICs. What
// nodes have as their own is not counted as free.
// Errors: kInvalidArgument (nothing asked for, or no pool is meant for such nodes).
absl::StatusOr<v1::WhatIfResponse> JudgeScaleUp(const FleetView& view,
                                                const v1::WhatIfRequest& request);

// Counts which namespaces and nodes have most addresses in use, node by node.
class TopUsers {
 public:
  void Add(const NodeRecord& record);
  // The `limit` greatest of each.
  v1::GetTopResponse Describe(uint32_t limit) const;

 private:
  std::vector<v1::TopEntry> nodes_;
  std::map<std::string, uint64_t> in_use_by_namespace_;
};

}  // namespace spoke::ipam
