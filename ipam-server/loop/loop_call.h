// Calls to the loop that wait for their answer, for threads that may.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ipam-server/loop/fleet_loop.h"

namespace spoke::ipam {

using LoopQuery = std::function<void(const FleetView&)>;
using LoopChange = std::function<absl::StatusOr<Effects>(ServerState&, RawRecords&)>;

// Thread-safe; not for the loop's own thread. What `query` and `change` refer to has to live until
// the call returns, and no longer: what comes too late is not called.

// Errors: kDeadlineExceeded; then `query` has not been called and will not be.
absl::Status AskLoop(FleetLoop& loop, absl::Duration patience, LoopQuery query);

// Errors: those of `change`; kUnavailable (cannot be stored); kDeadlineExceeded: when it had not
// begun it never will, else it may have happened, as the message says.
absl::Status ChangeInLoop(FleetLoop& loop, absl::Duration patience, LoopChange change);

// How far something is: so many of so many.
using Progress = std::function<void(uint64_t done, uint64_t total)>;

// Visits every node by its key, in queries of bounded work; `progress` is called between them, on
// the caller's thread. Each node is seen whole and as it is at one moment, and those of one query
// at the same; what changes between two queries is seen of the nodes that come later only. A node
// that is there from the beginning to the end is visited once. One that comes, goes, or says
// another VM id meanwhile may be visited or not, and an address that moves from one node to another
// may be seen at both, at its present holder last or not at all: whoever lists addresses takes the
// later one. Errors: as AskLoop(); then it has visited some.
absl::Status VisitNodes(
    FleetLoop& loop, absl::Duration patience,
    const std::function<void(const FleetView&, const NodeRecord&)>& visit,
    const Progress& progress = [](uint64_t, uint64_t) {});

// Asks the agents of all `nodes` at once how the last ADDs of the pod went. An answer for each
// node, within `patience` and kTracePatience; errors: as FleetLoop::PostAskTraces().
std::map<std::string, absl::StatusOr<node_api::AttachTracesAnswer>> AskTraces(
    FleetLoop& loop, absl::Duration patience, const std::set<std::string>& nodes,
    const std::string& pod_namespace, const std::string& pod_name);

// Asks the agents of all nodes of `requests` at once what they can reach, and calls `take` with
// each answer as it comes, on the caller's thread; errors: as FleetLoop::PostAskProbe(). Returns
// when all have answered or were given up, which the loop does in time.
void AskProbes(FleetLoop& loop, const std::map<std::string, node_api::ProbeRequest>& requests,
               const std::function<void(const std::string& node,
                                        const absl::StatusOr<node_api::ProbeAnswer>&)>& take);

// Asks the agents of all nodes of `policies`, like AskProbes(), what their policy would end there.
void AskTrials(FleetLoop& loop,
               const std::map<std::string, std::shared_ptr<const Bundle>>& policies,
               const std::function<void(const std::string& node,
                                        const absl::StatusOr<node_api::PolicyTrialAnswer>&)>& take);

// Asks the agent of `node` for these parts of what it has kept; none: all. Errors: as
// FleetLoop::PostAskNodeData().
absl::StatusOr<node_api::NodeDataAnswer> AskNodeData(FleetLoop& loop, const std::string& node,
                                                     const std::vector<std::string>& parts);

// Tells the agent of `node` that these events of its maintenance may begin; none: all of them.
// Returns their ids. Errors: as FleetLoop::PostStartMaintenance(); kDeadlineExceeded.
absl::StatusOr<std::vector<std::string>> StartMaintenance(FleetLoop& loop, const std::string& node,
                                                          const std::vector<std::string>& events);

}  // namespace spoke::ipam
