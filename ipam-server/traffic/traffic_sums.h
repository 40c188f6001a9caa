// What pods have sent and received, by namespace, team and node, added up from the totals that
// agents report. Pure.
//
// Agents say totals since their node began to count, so a report may be lost, come late or come
// twice. Sums here only rise: a node that begins anew, goes away or is replaced takes nothing off.
// They begin with the server; what a node had counted before that is left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "ipam-server/ledger/node_record.h"
#include "lib/node_api/traffic.h"

namespace spoke::ipam {

// What has come to the sums by a report: of `pod_namespace`, and of `team`, to which it belongs.
struct TrafficDelta {
  std::string_view pod_namespace;
  std::string_view team;
  std::string_view traffic_class;
  node_api::Volume volume;
};

// Not thread-safe.
class TrafficSums {
 public:
  static constexpr size_t kMaxNamespaces = 10'000;
  static constexpr size_t kMaxTeams = 1'000;
  static constexpr size_t kMaxClasses = 64;
  static constexpr size_t kMaxNodes = 20'000;       // The one silent for longest is forgotten.
  static constexpr size_t kMaxNodeEntries = 4'096;  // Namespaces times classes of one node.
  // Pods of a node that has been silent for this long are no longer named.
  static constexpr absl::Duration kPodsFor = absl::Minutes(1);

  // The name under which namespaces, teams and classes beyond the limits go. No Kubernetes name
  // begins so.
  static constexpr std::string_view kOther = "_other";
  static constexpr std::string_view kNoTeam = "_none";  // The namespaces without a team.

  explicit TrafficSums(absl::Time began) : began_(began) {}

  // Sets the teams from now on. What a namespace had before stays with the team it had then.
  void SetTeams(std::map<std::string, std::string> team_by_namespace) {
    team_by_namespace_ = std::move(team_by_namespace);
  }

  // Adds what `report` has more than the last one of `node`. `on_delta` hears of each sum that has
  // risen; its texts are valid during the call.
  void Take(
      const NodeKey& node, const node_api::TrafficReport& report, absl::Time now,
      const std::function<void(const TrafficDelta&)>& on_delta = [](const TrafficDelta&) {});

  struct NamedSums {
    std::string name;
    node_api::VolumeByClass volumes;
  };
  // Return the sums in the order of names.
  std::vector<NamedSums> Namespaces() const;
  std::vector<NamedSums> Teams() const;
  std::vector<NamedSums> Nodes() const;
  // Returns what the nodes that are not silent said last: (node, pod).
  std::vector<std::pair<std::string, node_api::PodVolumes>> Pods(absl::Time now) const;
  // Returns the number of nodes that are not silent.
  size_t Reporting(absl::Time now) const;

 private:
  // Sums by name and class; names and classes beyond a limit share one.
  class Table {
   public:
    explicit Table(size_t most) : most_(most) {}
    // The number under which `name` is kept. The same for a name ever after.
    uint32_t IdOf(std::string_view name);
    const std::string& NameOf(uint32_t id) const { return rows_[id].name; }
    void Add(uint32_t id, uint32_t traffic_class, const node_api::Volume& volume);
    std::vector<NamedSums> All(const std::vector<std::string>& classes) const;

   private:
    struct NumberedRow {
      std::string name;
      std::vector<node_api::Volume> by_class;
    };
    size_t most_;
    std::vector<NumberedRow> rows_;
    absl::flat_hash_map<std::string, uint32_t> ids_;
  };
  struct Node {
    std::string vm_id;
    absl::Time epoch;
    absl::Time last;
    // What it said last, by namespace and class.
    absl::flat_hash_map<uint64_t, node_api::Volume> said;
    std::vector<node_api::Volume> sums;  // Indexed by class.
    std::vector<node_api::PodVolumes> pods;
  };

  uint32_t ClassOf(std::string_view name);
  Node& NodeFor(const NodeKey& node, const node_api::TrafficReport& report, absl::Time now,
                bool& baseline);
  void ForgetOne();

  absl::Time began_;  // Older counts of nodes not known give a baseline only.
  std::map<std::string, std::string> team_by_namespace_;
  std::vector<std::string> classes_;
  Table namespaces_{kMaxNamespaces};
  Table teams_{kMaxTeams};
  std::map<std::string, Node> nodes_;
};

}  // namespace spoke::ipam
