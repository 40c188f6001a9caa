#include "ipam-server/nodes/nodes_job.h"

#include <sys/prctl.h>

#include <random>

#include "ipam-server/nodes/fleet_facts.h"

namespace spoke::ipam {
namespace {

constexpr size_t kMaxWrites = 64;
// A page of nodes with all of their images.
constexpr size_t kMaxAnswerBytes = size_t{32} << 20U;
constexpr absl::Duration kLoopPatience = absl::Seconds(10);
constexpr absl::Duration kTurn = absl::Seconds(1);

}  // namespace

NodesJob::NodesJob(const kubernetes::ClusterAccess& access, const NodeSync::Settings& settings,
                   const Edges& edges)
    : transport_({.max_connections = kMaxWrites + 8,
                  .max_response_bytes = kMaxAnswerBytes,
                  .ca_file = access.ca_file}),
      client_({.access = access, .max_writes = kMaxWrites, .seed = std::random_device()() | 1U},
              transport_, edges.clock),
      sync_(
          settings,
          {.client = client_,
           .read_facts =
               [&loop = edges.loop, &board = edges.reachability, &clock = edges.clock] {
                 absl::StatusOr<FleetFacts> facts =
                     ReadFleetFacts(loop, board.settings().group_label, kLoopPatience);
                 if (facts.ok()) {
                   AddSuspicions(board.Get().get(), board.settings(), clock.Now(), *facts);
                 }
                 return facts;
               },
           .clock = edges.clock,
           .log = edges.log,
           .board = edges.board,
           .tell = [&loop = edges.loop](
                       const std::string& problem) { loop.PostProblem("kubernetes", problem); }}) {}

void NodesJob::Stop() {
  stopped_ = true;
  client_.Wake();
  if (thread_.joinable()) thread_.join();
}

void NodesJob::Start() {
  thread_ = std::thread([this] {
    ::prctl(PR_SET_NAME, "nodes");
    while (!stopped_) sync_.RunOnce(kTurn);
  });
}

}  // namespace spoke::ipam
