// Node records to bytes and back (proto/spoke/v1/record.proto). Pure.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "ipam-server/core/node_record.h"

namespace spoke::ipam {

inline constexpr std::string_view kNodeKeyPrefix = "node/";

// "node/<name>/<vm id>".
std::string StoreKeyOf(const NodeKey& key);

std::string EncodeNode(const NodeRecord& record);

// Errors: kDataLoss (not a record of ours, or one that breaks an invariant; the message says
// which).
absl::StatusOr<NodeRecord> DecodeNode(std::string_view bytes);

}  // namespace spoke::ipam
