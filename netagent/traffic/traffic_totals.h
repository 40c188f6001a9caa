// The sums of this node's traffic, as values. Bytes are those of IP packets, as the kernel
// forwards them: a large packet that the device will cut later counts once, with one header.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace spoke::netagent {

// What was counted of one class: more than node_api::Volume, which is what the server is told.
struct TrafficCount {
  uint64_t sent = 0;      // Bytes sent, as the pods (or the node itself) see it.
  uint64_t received = 0;  // Bytes received.
  uint64_t sent_packets = 0;
  uint64_t received_packets = 0;

  bool operator==(const TrafficCount&) const = default;
};

// Counts by the class's name: "cluster", "internet", "group:NAME".
using CountByClass = std::map<std::string, TrafficCount>;

struct PodTotals {
  std::string pod_namespace;
  std::string pod_name;
  std::string pod_uid;
  bool ended = false;  // Whether the pod has ended; it is kept a while after its end.
  CountByClass volumes;

  bool operator==(const PodTotals&) const = default;
};

// The totals of a node. None of the sums ever falls while `epoch` is the same, whatever becomes of
// pods, policy and agent.
struct TrafficTotals {
  std::map<std::string, CountByClass> namespaces;  // By namespace, pods that have ended included.
  std::vector<PodTotals> pods;
  // The node's own volumes, by hook: "forward" is what pods sent and received, "input" and "output"
  // what the node itself did (there, only received or only sent).
  std::map<std::string, CountByClass> node;
  struct Dropped {
    uint64_t packets = 0;
    uint64_t bytes = 0;
    bool operator==(const Dropped&) const = default;
  };
  std::map<std::string, Dropped> drops;  // By reason: "unknown-source", "peer-spoke-sent".
  // The packets that passed without being counted above, for want of room in the kernel's sets.
  Dropped uncounted;
  absl::Time epoch;  // The time when the counters began at 0.
  bool fast_path = false;
  std::string fast_path_state;  // The state in words: "on", or why the fast path is off.
  // The number of pods that left the fast path, since more of their connections are translated than
  // it remembers.
  uint64_t over_share_pods = 0;
  uint64_t drift_repaired = 0;  // The number of times that somebody else's change was undone.

  bool operator==(const TrafficTotals&) const = default;
};

}  // namespace spoke::netagent
