// What an agent has kept of its own past and state, as an operator asks and the agent answers.
// Values and their codec. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace spoke::v1 {
class NodeData;
class NodeDataRequest;
}  // namespace spoke::v1

namespace spoke::node_api {

struct NodeDataRequest {
  uint64_t id = 0;
  std::vector<std::string> parts = {};  // "log", "state"; none: all.

  bool operator==(const NodeDataRequest&) const = default;
};

struct NodeDataPart {
  std::string name;
  std::string text;

  bool operator==(const NodeDataPart&) const = default;
};

// The answer to the request of that id.
struct NodeDataAnswer {
  uint64_t id = 0;
  std::vector<NodeDataPart> parts = {};
  std::string error = {};

  bool operator==(const NodeDataAnswer&) const = default;
};

inline constexpr int kMaxNodeDataParts = 16;
// The longest text of all parts together, in bytes; well below gRPC's 4 MiB.
inline constexpr size_t kMaxNodeDataBytes = 1 << 20;

void ToWire(const NodeDataRequest& in, v1::NodeDataRequest& out);
// Errors: kInvalidArgument (more than kMaxNodeDataParts, or one that is no name).
absl::StatusOr<NodeDataRequest> FromWire(const v1::NodeDataRequest& in);

// Both say and take the first kMaxNodeDataParts; of a text that is too long the end is kept, since
// the newest of a log is there.
void ToWire(const NodeDataAnswer& in, v1::NodeData& out);
// Errors: kInvalidArgument (a part whose name is none).
absl::StatusOr<NodeDataAnswer> FromWire(const v1::NodeData& in);

}  // namespace spoke::node_api
