// Takes everything of the agent's off a node, and tells what there is, what goes and what became of
// it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "netagent/cleanup/cleanup_plan.h"

namespace spoke::netagent {

// The edge to the node. Implemented by NodeCleaner and, in tests, a fake. Not thread-safe.
class CleanupEdge {
 public:
  virtual ~CleanupEdge() = default;

  // Reads all that is there. What could not be read is missing in `traces`, and its error is in the
  // list.
  virtual std::vector<absl::Status> Read(NodeTraces& traces) = 0;

  // Removes an object of the last Read(). Returns false when it is gone already, or is a directory
  // in which somebody else has something. Errors are the kernel's, with the object and what to do
  // where that is known.
  virtual absl::StatusOr<bool> Remove(const Removal& removal) = 0;
};

struct CleanupOptions {
  bool with_pods = false;  // Whether links that pods use go too; those pods have no network then.
  // The pods of links, for messages; as far as it is known.
  std::map<std::string, std::string> pod_of_link = {};
};

struct CleanupFailure {
  std::string what;   // The object; empty: `error` says it.
  std::string error;  // The error, in one line.
};

struct CleanupReport {
  std::string refused;  // The reason why nothing was done; empty: something was.
  // The links that pods use, and whose they are, where that is the reason.
  std::vector<std::string> pods;
  std::vector<Removal> removed;
  std::vector<CleanupFailure> failed;
  std::vector<LeftAlone> left;

  bool ok() const { return refused.empty() && failed.empty(); }
};

// Removes all there is, in order, whatever becomes of single steps. Does nothing while pods use
// links of ours, unless it may.
CleanupReport CleanUp(CleanupEdge& edge, const CleanupOptions& options);

// Return the report for people, and as JSON. Pure.
std::string CleanupTable(const CleanupReport& report);
std::string CleanupJson(const CleanupReport& report);

}  // namespace spoke::netagent
