// What an agent's checks of its node find (lib/node_checks), as the server is told of it. Values
// and their codec. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace spoke::v1 {
class NodeFindings;
}  // namespace spoke::v1

namespace spoke::node_api {

struct NodeFinding {
  std::string check;      // The check's id: "forwarding".
  bool blocking = false;  // It leaves pods without network, now or later; else it is a warning.
  std::string object;     // The object it is about: "net.ipv4.ip_forward".
  std::string what;       // The words for what was seen there.
  std::string remedy;     // A command, or a file with its lines.
  // For how long the agent has found it; zero: it does not say. Whole milliseconds.
  absl::Duration age = absl::ZeroDuration();

  // Returns whether the other is about the same, whatever the numbers in its words and its age
  // are by now.
  bool IsAbout(const NodeFinding& other) const {
    return check == other.check && object == other.object && blocking == other.blocking;
  }
  bool operator==(const NodeFinding&) const = default;
};

// All that is found now, in place of what was said before; blocking ones first. The server keeps it
// in memory, for as long as the session lasts.
struct NodeFindings {
  std::vector<NodeFinding> findings;

  bool operator==(const NodeFindings&) const = default;
};

inline constexpr int kMaxFindings = 32;
inline constexpr size_t kMaxFindingBytes = 512;  // The longest text of one.
inline constexpr absl::Duration kMaxFindingAge = absl::Hours(24 * 365);

// Says the first kMaxFindings; texts are cut.
void ToWire(const NodeFindings& in, v1::NodeFindings& out);
// Takes the first kMaxFindings; texts are cut, and ages are brought between zero and
// kMaxFindingAge. Errors: kInvalidArgument (a check whose id is no name), with the place in the
// list.
absl::StatusOr<NodeFindings> FromWire(const v1::NodeFindings& in);

}  // namespace spoke::node_api
