// Lets nodes probe each other round after round, and says which of them lose packets. On a thread
// of its own: the loop that decides about addresses only passes questions and answers on.
#pragma once

#include <set>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "ipam-server/loop/fleet_loop.h"
#include "ipam-server/nodes/reachability/probe_rounds.h"
#include "ipam-server/nodes/reachability/reachability_board.h"
#include "lib/os/clock.h"
#include "lib/telemetry/log.h"

namespace spoke::ipam {

// Returns a node whose agent is connected, with the value of the label `group`. For the loop's
// thread.
ProbedNode ProbedNodeOf(const NodeRecord& record, const Session& session, const std::string& group);

// Returns the nodes whose agents are connected, with the value of the label `group`. For any thread
// but the loop's own. Errors: as AskLoop().
absl::StatusOr<std::vector<ProbedNode>> ReadProbedNodes(FleetLoop& loop, const std::string& group,
                                                        absl::Duration patience);

class ReachabilityJob {
 public:
  struct Edges {
    FleetLoop& loop;
    const os::Clock& clock;
    telemetry::Log& log;
    ReachabilityBoard& board;
  };

  // Borrows the edges; the board has the settings.
  explicit ReachabilityJob(const Edges& edges);
  ReachabilityJob(const ReachabilityJob&) = delete;
  ReachabilityJob& operator=(const ReachabilityJob&) = delete;
  ~ReachabilityJob() { Stop(); }

  // Begins the work: a round in each interval. Call it once.
  void Start();
  // Ends it. Before the loop stops, or else it waits for an answer that does not come.
  void Stop();

  // Does one round, which lasts for up to `length` and a second, and puts what is judged on the
  // board. Errors: as ReadProbedNodes(); then there was no round.
  absl::Status RunOnce(absl::Duration length);

 private:
  struct Round;
  bool WaitUntil(absl::Time deadline);
  void Ask(Round& round, absl::Duration length);
  void AskSome(Round& round, size_t portion);
  void Tell(const Reachability& judged);

  const Edges edges_;
  ProbeRounds rounds_;
  std::set<std::string> told_;  // The suspects that the log knows.
  bool told_unjudged_ = false;
  absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace spoke::ipam
