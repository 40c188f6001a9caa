// NodeSync on a thread of its own, with its way to the API server.
#pragma once

#include <atomic>
#include <thread>

#include "ipam-server/loop/fleet_loop.h"
#include "ipam-server/nodes/node_sync.h"
#include "ipam-server/nodes/reachability/reachability_board.h"
#include "lib/http/curl_transport.h"
#include "lib/kubernetes/api.h"
#include "lib/kubernetes/node_client.h"
#include "lib/os/clock.h"
#include "lib/telemetry/log.h"

namespace spoke::ipam {

class NodesJob {
 public:
  struct Edges {
    FleetLoop& loop;
    const os::Clock& clock;
    telemetry::Log& log;
    StandingBoard& board;
    const ReachabilityBoard& reachability;
  };

  // Borrows the edges; `access`: how the API server is reached, in whose name.
  NodesJob(const kubernetes::ClusterAccess& access, const NodeSync::Settings& settings,
           const Edges& edges);
  NodesJob(const NodesJob&) = delete;
  NodesJob& operator=(const NodesJob&) = delete;
  ~NodesJob() { Stop(); }

  // Begins the work.
  void Start();
  // Ends it; writes under way may happen or not. Before the loop stops, or else it waits for an
  // answer that does not come.
  void Stop();

 private:
  http::CurlTransport transport_;
  kubernetes::NodeClient client_;
  NodeSync sync_;
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

}  // namespace spoke::ipam
