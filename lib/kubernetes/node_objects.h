// Nodes, lists of them and the events of a watch as the API server writes them: only the fields
// that are used, read within limits. Pure, thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace spoke::kubernetes {

struct Taint {
  std::string key;
  std::string value;
  std::string effect;  // NoSchedule, PreferNoSchedule or NoExecute.

  bool operator==(const Taint&) const = default;
};

struct Condition {
  std::string type;
  std::string status;  // True, False or Unknown.
  std::string reason;
  std::string message;

  bool operator==(const Condition&) const = default;
};

struct Node {
  std::string name;
  std::string uid;
  std::string resource_version;
  std::vector<Taint> taints;          // In the node's order, which patches count by.
  std::vector<Condition> conditions;  // Those whose type begins with kOwnConditions.

  const Taint* FindTaint(std::string_view key) const;
  const Condition* FindCondition(std::string_view type) const;
  bool operator==(const Node&) const = default;
};

// The beginning of the types of conditions that are kept: the kubelet's own change too often, and
// nobody here asks for them.
inline constexpr std::string_view kOwnConditions = "Spoke";

inline constexpr size_t kMaxTaints = 64;
inline constexpr size_t kMaxConditions = 64;
// The longest text that is kept of a node; longer ones make it unreadable.
inline constexpr size_t kMaxTextBytes = 4096;

// A page of a list.
struct NodePage {
  std::vector<Node> nodes;
  std::string resource_version;  // The list's, where a watch goes on.
  std::string next;              // The token for the next page; empty: this is the last.
  size_t unreadable = 0;         // Entries that are no nodes as this reads them.
};

struct WatchEvent {
  enum class Kind : uint8_t { kAdded, kModified, kDeleted, kBookmark, kError };
  Kind kind = Kind::kBookmark;
  Node node;            // Of a bookmark only the resource version.
  int code = 0;         // Of an error: as HTTP's.
  std::string message;  // Of an error.
};

// Errors: kInvalidArgument (not JSON, not of that kind, a name that no node can have, without a
// version, a field of another type, more or longer entries than are kept).
absl::StatusOr<Node> ParseNode(std::string_view text);
// Errors: kInvalidArgument (not JSON, not a NodeList, without a version).
absl::StatusOr<NodePage> ParseNodeList(std::string_view text);
// One line of a watch. Errors: kInvalidArgument (not JSON, no type that is known, or an object that
// ParseNode() would refuse).
absl::StatusOr<WatchEvent> ParseWatchEvent(std::string_view line);

// Returns whether `a` is an older version of the same object than `b`. Versions count upwards;
// false when either is no number.
bool IsOlder(std::string_view a, std::string_view b);

}  // namespace spoke::kubernetes
