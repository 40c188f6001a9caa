// Pods that come at a constant rate, on one node after the other, and go as soon as the server
// knows of them: an open loop, which does not wait for a server that is slow or away.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "tests/bench/swarm/swarm.h"

namespace spoke::swarm {

// Thread-safe.
class PodArrivals {
 public:
  // Borrows the swarm.
  explicit PodArrivals(Swarm& swarm) : swarm_(swarm) {}
  ~PodArrivals() { SetRate(0); }
  PodArrivals(const PodArrivals&) = delete;
  PodArrivals& operator=(const PodArrivals&) = delete;

  // So many pods a second from now on, at most kMostRate; 0: none.
  void SetRate(uint32_t pods_a_second);
  static constexpr uint32_t kMostRate = 100'000;

  uint64_t arrived() const { return arrived_.load(); }
  // Returns how many found no address available on their node: an ADD that would have failed.
  uint64_t failed() const { return failed_.load(); }

 private:
  void Run(uint32_t pods_a_second);

  Swarm& swarm_;
  std::atomic<uint64_t> arrived_{0};
  std::atomic<uint64_t> failed_{0};
  size_t next_ = 0;  // The node of the next pod; the thread's.
  absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace spoke::swarm
