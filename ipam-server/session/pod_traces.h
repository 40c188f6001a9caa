// How the last ADDs of a pod went: found out from the agents of its nodes, for an operator.
#pragma once

#include "absl/time/time.h"
#include "ipam-server/loop/fleet_loop.h"
#include "ipam-server/store/store.h"
#include "proto/spoke/v1/admin.pb.h"

namespace spoke::ipam {

// Adds to `response`, which explains the pod of `request`, the pod's last ADD on each interface of
// each node: of the node that is asked for, else of those where it has addresses (at most
// kMaxTracedNodes), else of the one where it last had one. Where an agent does not tell, it adds
// why. Waits for the agents, for `patience` at most; not for the loop's thread.
void AddPodTraces(FleetLoop& loop, Store& store, absl::Duration patience,
                  const v1::ExplainRequest& request, v1::ExplainResponse& response);

// A pod is on one node; several are what a name leaves behind that is used again and again.
inline constexpr size_t kMaxTracedNodes = 8;

}  // namespace spoke::ipam
