// What a policy promises and can be tried from nodes: the hub is reached, other spokes are not.
// Which addresses to try, and what to make of the answers. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ipam-server/policy/objects/object_set.h"
#include "lib/node_api/probes.h"
#include "proto/spoke/v1/admin.pb.h"

namespace spoke::ipam {

inline constexpr absl::Duration kProbeTimeout = absl::Seconds(2);  // The default of a request.
inline constexpr size_t kNodesByDefault = 3;
inline constexpr size_t kMaxProbedNodes = 200;

// The hub's and the spokes', in this order.
struct ProbePlan {
  std::vector<node_api::ProbeTarget> targets;
  size_t hubs = 0;  // How many of them are the hub's, and are to be reached.
  absl::Duration timeout;
};

// Plans probes; without targets of the hub, or of the spokes, to the first address of each of
// their blocks in `objects`. Errors: kInvalidArgument (a target that is none, too many of them, or
// too long a timeout), kFailedPrecondition (nothing to choose from: no target is
// named, and there is no ClusterNetwork, or one without such blocks).
absl::StatusOr<ProbePlan> PlanProbes(const ObjectSet& objects,
                                     const v1::VerifyPolicyRequest& request);

// Parses "10.0.0.1" (echo), "10.0.0.1:443", "[fd00::1]:443", "fd00::1". Errors: kInvalidArgument.
absl::StatusOr<node_api::ProbeTarget> ParseTarget(const std::string& text);

// Returns some of `connected` (in order), as far from each other as can be.
std::vector<std::string> ChooseNodes(const std::vector<std::string>& connected);

// The answer of `node`'s agent to `plan`. A target it does not speak of was not tried.
v1::VerifyPolicyResponse DescribeProbes(const std::string& node, const ProbePlan& plan,
                                        const absl::StatusOr<node_api::ProbeAnswer>& answer);

}  // namespace spoke::ipam
