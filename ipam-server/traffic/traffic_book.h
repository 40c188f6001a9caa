// Who sends and receives how much, by what agents report: the sums, in memory, for operators and
// for Prometheus.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "ipam-server/telemetry/server_metrics.h"
#include "ipam-server/traffic/traffic_history.h"
#include "ipam-server/traffic/traffic_sums.h"
#include "lib/os/clock.h"

namespace spoke::ipam {

// Thread-safe. Reports come on the threads of their streams and pass the loop by: they change
// nothing that is stored, and 7,500 nodes send 750 of them each second.
class TrafficBook {
 public:
  // Borrows both; `metrics` may be nullptr.
  TrafficBook(const os::Clock& clock, ServerMetrics* metrics)
      : clock_(clock), metrics_(metrics), sums_(clock.Now()) {}

  void Take(const NodeKey& node, const node_api::TrafficReport& report);
  void SetTeams(std::map<std::string, std::string> team_by_namespace);

  // Calls `look` with the sums as they are, and the time. Agents' reports wait meanwhile.
  void Look(const std::function<void(const TrafficSums&, absl::Time now)>& look) const;
  // Returns what the namespaces with most traffic of the class had over the last hour.
  TrafficCourse CourseOf(std::string_view traffic_class, size_t most) const;
  // Returns the classes that have had traffic in that hour, sorted.
  std::vector<std::string> Classes() const;

 private:
  const os::Clock& clock_;
  ServerMetrics* const metrics_;
  mutable absl::Mutex mutex_;
  TrafficSums sums_ ABSL_GUARDED_BY(mutex_);
  TrafficHistory history_ ABSL_GUARDED_BY(mutex_);  // Of namespaces; read as reports come.
  // What Prometheus gets, by "n/NAMESPACE/CLASS" or "t/TEAM/CLASS": sent and received.
  absl::flat_hash_map<std::string, std::pair<telemetry::Counter, telemetry::Counter>> counters_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace spoke::ipam
