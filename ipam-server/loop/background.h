// Work that takes long and touches nothing of the loop's, on a thread of its own.
#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace spoke::ipam {

// Thread-safe. One piece of work at a time, in the order they were given.
class Background {
 public:
  Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  // Finishes all that was given.
  ~Background();

  // Returns at once. What `work` refers to has to live until it is done. Unbounded: the loop gives
  // a piece or two each time that the store fails, and not before the last ones are done.
  void Run(std::function<void()> work);

 private:
  void Work();

  absl::Mutex mutex_;
  std::deque<std::function<void()>> waiting_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // It stands last, since it uses all of the above.
};

}  // namespace spoke::ipam
