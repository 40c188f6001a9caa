// The times at which each simulated agent says what it uses of budgets.
#pragma once

#include <atomic>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "tests/bench/swarm/agent.h"

namespace spoke::swarm {

// The reports. Thread-safe. Each agent reports every `refresh`, a tenth more or less, from some
// time within the first on.
class BudgetReports {
 public:
  BudgetReports(absl::Duration refresh, uint64_t seed)
      : refresh_ns_(absl::ToInt64Nanoseconds(refresh)), random_(seed) {}
  ~BudgetReports() { Stop(); }
  BudgetReports(const BudgetReports&) = delete;
  BudgetReports& operator=(const BudgetReports&) = delete;

  // Borrows the agents until Stop(). `refresh` must not be zero.
  void Start(std::vector<Agent*> agents);
  void Stop();

  uint64_t sent() const { return sent_.load(); }

 private:
  void Run(const std::vector<Agent*>& agents);

  const int64_t refresh_ns_;
  std::mt19937_64 random_;  // The thread's numbers.
  std::atomic<uint64_t> sent_{0};
  absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace spoke::swarm
