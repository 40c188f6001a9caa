// Which taints and conditions of nodes are to be written, from what the API server and the fleet
// say, within the limits on how many nodes may be kept from pods. Pure.
//
// A wrong threshold, a bug of ours or a network that is cut must not empty the cluster: what is
// lifted too late costs minutes, what is tainted wrongly costs jobs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "ipam-server/nodes/fitness.h"
#include "ipam-server/nodes/fitness_hold.h"
#include "ipam-server/nodes/node_remedy.h"
#include "ipam-server/nodes/write_pace.h"
#include "lib/kubernetes/node_objects.h"
#include "lib/kubernetes/node_requests.h"

namespace spoke::ipam {

// Given by the kubelet to a node that joins, without a value, and by us to one that became unfit,
// with kUnfit.
inline constexpr std::string_view kNotReadyTaint = "spoke.internal/agent-not-ready";
inline constexpr std::string_view kNoAddressesTaint = "spoke.internal/no-addresses";
inline constexpr std::string_view kUnfit = "unfit";
inline constexpr std::string_view kReadyCondition = "SpokeNetworkReady";

struct WriteLimits {
  // Nodes that may get a taint in a minute: the larger of a number and a share of all nodes.
  uint64_t taints_floor = 20;
  double taints_share_a_minute = 0.01;
  // Nodes that may have a taint of ours at once, that of joining not counted; one at the least.
  double taints_share = 0.05;
  // The same of the nodes of one fault domain. A domain that is cut off as a whole is more likely
  // cut off from us than broken.
  double taints_share_of_domain = 0.5;
  // Writes for nodes that join, and all others.
  double joins_per_second = 300;
  double writes_per_second = 20;

  bool operator==(const WriteLimits&) const = default;
};

// What is to be written of one node: at most one patch of its taints, one of its conditions and one
// event.
struct NodeWrite {
  std::string node;
  std::vector<std::string> remove;  // Keys of taints.
  std::vector<kubernetes::Taint> add;
  std::vector<kubernetes::ConditionChange> conditions;
  // A condition that operators are told of by an event as well; nullopt: there is none.
  std::optional<kubernetes::Condition> event;

  size_t requests() const {
    return (remove.empty() && add.empty() ? 0U : 1U) + (conditions.empty() ? 0U : 1U) +
           (event ? 1U : 0U);
  }
  bool operator==(const NodeWrite&) const = default;
};

struct NodePlan {
  std::vector<NodeWrite> writes;
  uint64_t waiting = 0;    // Nodes whose writes wait for their turn; more can be planned soon.
  uint64_t unfit = 0;      // Nodes that are not ready by their agent, for long enough.
  uint64_t tainted = 0;    // Nodes with a taint of ours, that of joining not counted.
  uint64_t joining = 0;    // Nodes with the taint that the kubelet gave.
  uint64_t held_back = 0;  // Nodes that would have a taint, and have not, because of a limit.
  std::string problem;     // Why something is not written though it should be; empty: nothing is.
};

// What is seen at one moment.
struct NodesSeen {
  const std::map<std::string, kubernetes::Node>& nodes;  // By name.
  const std::map<std::string, FitnessFacts>& facts;      // By name.
  std::string frozen;  // Why nothing may be decided from these; empty: it may.
  size_t room = 0;     // Requests that can be begun.
  NodeRemedies remedies = {};
};

// Not thread-safe; the loop that writes owns it. Memory: some hundred bytes a node.
class NodePlanner {
 public:
  NodePlanner(const HoldTimes& times, const WriteLimits& limits);

  // Returns what to write at `now`. A node with a write that has not ended is left alone.
  NodePlan Plan(const NodesSeen& seen, absl::Time now);

  // One request of a write of that node has ended. What failed is planned again, later each time;
  // kAborted and kNotFound at once.
  void OnWritten(const std::string& node, const absl::Status& status, bool throttled,
                 absl::Time now);

 private:
  struct Memory {
    FitnessHold hold;
    size_t writing = 0;  // Requests under way.
    int failures = 0;
    absl::Time not_before = absl::InfinitePast();
    absl::Time condition_at = absl::InfinitePast();
    absl::Time maintenance_at = absl::InfinitePast();       // Its condition was written.
    absl::Time interrupted_since = absl::InfiniteFuture();  // It is to be interrupted.
  };
  struct Candidate {
    NodeWrite write;
    absl::Time since;
    bool joins = false;
    bool is_tainted = false;  // It has a taint of ours, and is among those that may.
    std::string domain = {};

    // Whether it takes one of the places of a minute: it gets its first taint of ours, or its pods
    // have to go.
    bool counts() const;
  };

  std::optional<Candidate> Want(const kubernetes::Node& node, const FitnessFacts* facts,
                                NodePlan& plan, absl::Time now);
  void WantTaints(const kubernetes::Node& node, bool known, const HeldFitness& held,
                  NodeWrite& write, absl::Time now) const;
  void WantReady(const kubernetes::Node& node, const FitnessFacts* facts, const HeldFitness& held,
                 Memory& memory, Candidate& candidate, absl::Time now);
  void WantMaintenance(const kubernetes::Node& node, const FitnessFacts& facts, Memory& memory,
                       NodeWrite& write, absl::Time now);
  void HoldBack(std::vector<Candidate>& candidates, const NodesSeen& seen, NodePlan& plan,
                absl::Time now);
  void Emit(std::vector<Candidate>& candidates, size_t room, NodePlan& plan, absl::Time now);

  const HoldTimes times_;
  const WriteLimits limits_;
  NodeRemedies remedies_;                 // As the last plan was asked for.
  std::map<std::string, Memory> memory_;  // By name, of nodes that are there.
  std::deque<absl::Time> tainted_;        // When nodes got a taint, within a minute.
  WritePace joins_;
  WritePace others_;
};

}  // namespace spoke::ipam
