// Where the thread that writes taints and conditions puts how it stands, for whoever wants to know.
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "ipam-server/nodes/standing.h"

namespace spoke::ipam {

// Thread-safe.
class StandingBoard {
 public:
  void Set(const NodesStanding& standing) {
    absl::MutexLock lock(&mutex_);
    standing_ = standing;
  }
  NodesStanding Get() const {
    absl::MutexLock lock(&mutex_);
    return standing_;
  }

 private:
  mutable absl::Mutex mutex_;
  NodesStanding standing_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spoke::ipam
