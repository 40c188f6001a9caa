// Tries what policy names of the hub and of peer spokes, once a minute on a thread of its own, for
// the checks "hub" and "peer-spoke" of the node.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "lib/node_api/probes.h"
#include "lib/node_checks/services/reach_answers.h"
#include "lib/os/clock.h"

namespace spoke::netagent {

// How a look tries its targets: as ProbeAll(), but what goes to peer spokes bears
// claims::kReachProbeMark, so that what this node's rules drop of it is no leak.
std::vector<node_api::ProbeResult> TryHub(const std::vector<node_api::ProbeTarget>& targets,
                                          const std::atomic<bool>& stop);
std::vector<node_api::ProbeResult> TryPeerSpokes(const std::vector<node_api::ProbeTarget>& targets,
                                                 const std::atomic<bool>& stop);

// Thread-safe, except Start().
class ReachWatch {
 public:
  // The pause between two looks, give or take a tenth: the nodes shall not try all at once.
  static constexpr absl::Duration kPause = absl::Minutes(1);
  // The same where something is in doubt, and the longest before targets that are new are tried.
  static constexpr absl::Duration kSoon = absl::Seconds(10);
  // How long an attempt lasts: the kernel sends again after one second.
  static constexpr absl::Duration kPatience = absl::Seconds(3);

  using Try = std::function<std::vector<node_api::ProbeResult>(
      const std::vector<node_api::ProbeTarget>& targets, const std::atomic<bool>& stop)>;
  // The functions are called on one thread at a time. A try ends soon once `stop` is true.
  struct Edges {
    const os::Clock& clock;
    std::function<double()> random;  // Uniform in [0, 1).
    Try try_hub = &TryHub;
    Try try_peer_spokes = &TryPeerSpokes;
  };

  explicit ReachWatch(Edges edges) : edges_(std::move(edges)) {}
  ReachWatch(const ReachWatch&) = delete;
  ReachWatch& operator=(const ReachWatch&) = delete;
  ~ReachWatch();

  // Looks, and then again after each pause. Call it once.
  void Start();

  // Says what to try from now on; what it said before is forgotten where it is not among it.
  void SetTargets(node_checks::ReachTargets targets);

  // Looks now: Start()'s thread does.
  void Look();

  // Returns what the last look found; nullopt: nobody has said what to try, or the first look is
  // not over.
  std::optional<node_checks::ReachAnswers> latest() const;

  // Returns how long to wait for the next look.
  absl::Duration Pause() const;

 private:
  void Run();
  bool IsWoken() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stop_ || changed_; }

  const Edges edges_;
  std::atomic<bool> stop_trying_ = false;
  mutable absl::Mutex mutex_;
  std::optional<node_checks::ReachTargets> targets_ ABSL_GUARDED_BY(mutex_);
  std::optional<node_checks::ReachAnswers> latest_ ABSL_GUARDED_BY(mutex_);
  bool changed_ ABSL_GUARDED_BY(mutex_) = false;  // The targets have not been tried yet.
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace spoke::netagent
