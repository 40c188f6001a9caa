// Where the thread that lets nodes probe each other puts what it has judged, for whoever wants to
// know.
#pragma once

#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "ipam-server/nodes/reachability/reachability.h"
#include "ipam-server/nodes/reachability/reachability_settings.h"

namespace spoke::ipam {

// Thread-safe.
class ReachabilityBoard {
 public:
  explicit ReachabilityBoard(ReachabilitySettings settings) : settings_(std::move(settings)) {}

  const ReachabilitySettings& settings() const { return settings_; }
  void Set(std::shared_ptr<const Reachability> judged) {
    absl::MutexLock lock(&mutex_);
    judged_ = std::move(judged);
  }
  // Returns the last; nullptr: nothing was judged yet.
  std::shared_ptr<const Reachability> Get() const {
    absl::MutexLock lock(&mutex_);
    return judged_;
  }

 private:
  const ReachabilitySettings settings_;
  mutable absl::Mutex mutex_;
  std::shared_ptr<const Reachability> judged_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spoke::ipam
