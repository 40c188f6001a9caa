// Lets all of some nodes probe each other on an operator's word: who probes whom, and what to make
// of the answers. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ipam-server/nodes/reachability/probe_rounds.h"
#include "proto/spoke/v1/admin_reachability.pb.h"

namespace spoke::ipam {

inline constexpr size_t kMaxCheckedNodes = 1000;

// The nodes of a check.
struct CheckedNodes {
  std::vector<ProbedNode> nodes;     // Those that can probe.
  std::vector<std::string> unheard;  // The others, with the reason.
};

// A job is "NAMESPACE/NAME".
struct JobName {
  std::string pod_namespace;
  std::string name;

  // Returns whether a pod is one of the job's: its name is that of the job, or begins with it and a
  // hyphen.
  bool Has(std::string_view pod_namespace_of, std::string_view pod_name) const;
};
// Errors: kInvalidArgument.
absl::StatusOr<JobName> ParseJobName(std::string_view text);

// The questions of a check in the order in which they are to be asked: one a node at most in each
// part, since an agent answers one after the other.
using CheckPart = std::map<std::string, ProbeQuestion>;  // By node.
// Each node probes all others with small packets, and half of them with full-size ones, so that
// each pair has one.
std::vector<CheckPart> PlanCheck(const std::vector<ProbedNode>& nodes, absl::Duration timeout);

// What is said at the end.
v1::CheckNodesResponse DescribeCheck(const Reachability& judged,
                                     const std::vector<std::string>& unheard);
// What is said of the rounds that go on all the time. `node`: whose peers are told; empty:
// nobody's. Errors: kNotFound (a node that has had no probes).
absl::StatusOr<v1::GetReachabilityResponse> DescribeReachability(const Reachability& judged,
                                                                 const std::string& node);

}  // namespace spoke::ipam
