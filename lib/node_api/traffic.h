// The traffic that the pods of a node have sent and received. Values and their codec. Pure.
//
// An agent counts more than it says: packets, and pods by their UID.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "lib/node_api/fields.h"

namespace spoke::v1 {
class TrafficReport;
}  // namespace spoke::v1

namespace spoke::node_api {

struct Volume {
  uint64_t sent = 0;      // The bytes of IP packets sent, from the pods' view.
  uint64_t received = 0;  // The bytes received.

  bool operator==(const Volume&) const = default;
};

// The volumes by the class's name: "cluster", "internet", "group:NAME".
using VolumeByClass = std::map<std::string, Volume>;

struct PodVolumes {
  std::string pod_namespace;
  std::string pod_name;
  VolumeByClass volumes;

  bool operator==(const PodVolumes&) const = default;
};

// The totals since `epoch`, so one report may be lost; another epoch is another count.
struct TrafficReport {
  absl::Time epoch;
  std::map<std::string, VolumeByClass> namespaces;
  std::vector<PodVolumes> pods;  // The pods with most traffic outside the cluster.

  bool operator==(const TrafficReport&) const = default;
};

inline constexpr int kMaxReportNamespaces = 2048;
inline constexpr int kMaxReportClasses = 64;
inline constexpr int kMaxReportPods = 20;

void ToWire(const TrafficReport& in, v1::TrafficReport& out);
// Reads a report. Never fails. Takes the first part of what is too long or too much:
// kMaxReportNamespaces namespaces, kMaxReportClasses classes of each, kMaxReportPods pods.
TrafficReport FromWire(const v1::TrafficReport& in);

}  // namespace spoke::node_api
