// Watches whether pods still work on the node: does the checks of lib/node_checks, once a minute or
// so on a thread of their own, since they read files and tables that may block. They change
// nothing, and nothing that pods have depends on what they find.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "lib/node_checks/examine.h"
#include "lib/telemetry/log.h"

namespace spoke::netagent {

struct NodeFindingCounts {
  uint64_t blocking = 0;
  uint64_t warnings = 0;
};

// Thread-safe, except Start().
class NodeWatch {
 public:
  static constexpr absl::Duration kPause = absl::Minutes(1);
  // The same while something blocks pods: it may be mended by now.
  static constexpr absl::Duration kPauseBlocked = absl::Seconds(10);

  using Examine = std::function<node_checks::Report()>;

  // `examine` is called on one thread at a time, its own one from Start() on. Borrows `log`.
  NodeWatch(Examine examine, telemetry::Log& log) : examine_(std::move(examine)), log_(log) {}
  NodeWatch(const NodeWatch&) = delete;
  NodeWatch& operator=(const NodeWatch&) = delete;
  // Waits for a look that is under way.
  ~NodeWatch();

  // Looks, and then again after each pause. Call it once.
  void Start();

  // Looks now, and logs each finding that is new, each that is gone, and each check that is not
  // made any more: Start()'s thread does.
  void Look();

  // Returns why pods will not work here, one line a blocking finding: what, where, and the remedy.
  // It is empty before the first look is over: what is not known does not make a node unready.
  std::vector<std::string> Reasons() const;
  NodeFindingCounts counts() const;
  std::vector<node_checks::Finding> findings() const;

 private:
  void Log(const std::vector<node_checks::Finding>& before,
           const std::vector<node_checks::Finding>& now);
  void LogNotMade(std::vector<node_checks::CheckNotMade> now);
  void Run();

  const Examine examine_;
  telemetry::Log& log_;
  mutable absl::Mutex mutex_;
  std::vector<node_checks::CheckNotMade> not_made_;  // The looking thread's.
  std::vector<node_checks::Finding> findings_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace spoke::netagent
