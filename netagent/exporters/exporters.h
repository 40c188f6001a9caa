// Serves what Prometheus can ask of the agent: its own metrics, and what iptables' rules have
// counted, as two widely used exporters serve it. All is read when it is asked for.
//
// Works on a thread of its own and on those of the endpoints: nothing here keeps the agent's loop
// waiting, and nothing that fails here keeps pods from starting.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "lib/os/clock.h"
#include "lib/rpc/credentials.h"
#include "lib/rpc/peer_gate.h"
#include "lib/rpc/refusal_counter.h"
#include "lib/telemetry/log.h"
#include "lib/telemetry/metrics.h"
#include "lib/telemetry/text_endpoint.h"
#include "netagent/config.h"
#include "netagent/exporters/agent_metrics.h"
#include "netagent/exporters/conntrack.h"
#include "netagent/exporters/traffic_series.h"
#include "netagent/iptables/iptables.h"
#include "netagent/iptables/published_rules_keeper.h"
#include "netagent/node/node_watch.h"

namespace spoke::netagent {

// The time that a scrape waits for the agent's loop; it goes without its values then.
inline constexpr absl::Duration kLoopPatience = absl::Milliseconds(250);
// The time after which an endpoint is tried again that could not be opened, as its port is in use.
inline constexpr absl::Duration kEndpointRetry = absl::Seconds(30);

class Exporters {
 public:
  struct Edges {
    Iptables& nft;
    Iptables& legacy;
    const os::Clock& clock;
    telemetry::Log& log;
    // Reads the agent's values, from any thread; waits for so long at most.
    std::function<absl::StatusOr<AgentReading>(absl::Duration)> read_agent;
    std::function<absl::StatusOr<ConntrackReading>()> read_conntrack = [] {
      return ReadConntrack();
    };
    // Returns what the checks of the node find; called from any thread.
    std::function<NodeFindingCounts()> read_node = [] { return NodeFindingCounts(); };
  };
  struct Settings {
    MetricsConfig config;
    bool legacy_command = false;  // The value for BackendUse.
    bool legacy_is_default = false;
    std::string state_file;  // The file of the state of the traffic's series, on tmpfs.
    std::string version;
    rpc::TlsFiles tls;  // Whose certificate's end is told.
  };
  // Borrows the edges.
  Exporters(Settings settings, Edges edges);
  // Waits for a scrape that is under way, or a look at the rules.
  ~Exporters();

  // Opens the endpoints, starts the thread. Call it once.
  void Start();

  // Return the ports that are open; 0: none. For tests, once Start() has returned.
  int metrics_port() const { return PortOf(agent_endpoint_); }
  int comments_port() const { return PortOf(comment_endpoint_); }
  int rules_port() const { return PortOf(rule_endpoint_); }

 private:
  using Endpoint = std::unique_ptr<telemetry::TextEndpoint>;

  static int PortOf(const Endpoint& endpoint) { return endpoint ? endpoint->port() : 0; }
  void Run();
  void Round();
  void OpenEndpoints();
  std::vector<telemetry::Samples> ScrapeAgent();
  std::vector<telemetry::Samples> ScrapeComments();
  std::vector<telemetry::Samples> ScrapeRules();
  // Counts the requests that all endpoints refused.
  RefusedScrapes CountRefused();
  // Reads what both back ends have.
  absl::StatusOr<std::vector<IptablesTable>> ReadIptables(ip::Family family);

  const Settings settings_;
  const Edges edges_;
  PublishedRulesKeeper keeper_;
  ConntrackWatch conntrack_watch_;
  std::optional<TrafficSeries> series_;  // The series of the scrapes of the agent, one at a time.
  SeriesState saved_;
  telemetry::Metrics agent_metrics_;
  telemetry::Metrics comment_metrics_;
  telemetry::Metrics rule_metrics_;
  absl::Time next_endpoints_ = absl::InfinitePast();
  bool endpoint_missing_ = false;
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool iptables_readable_ ABSL_GUARDED_BY(mutex_) = true;
  // The counters of each endpoint that is open; a scrape reads them while another endpoint is
  // opened.
  std::vector<std::shared_ptr<const rpc::RefusalCounter>> refusals_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
  // The endpoints are last, so that no scrape outlives what it reads.
  Endpoint agent_endpoint_;
  Endpoint comment_endpoint_;
  Endpoint rule_endpoint_;
};

}  // namespace spoke::netagent
