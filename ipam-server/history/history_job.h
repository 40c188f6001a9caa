// Keeps the history within its limits: drops what is too old or too much, and puts small chunks
// together. It trims the log of operators as well (operators/operator_log.h). On a thread of its
// own, beside the loop's commits.
#pragma once

#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "ipam-server/history/history.h"
#include "ipam-server/store/store.h"
#include "lib/os/clock.h"
#include "lib/telemetry/log.h"

namespace spoke::ipam {

class HistoryJob {
 public:
  // Borrows `store`, `clock` and `log`.
  HistoryJob(const HistoryLimits& limits, Store& store, const os::Clock& clock,
             telemetry::Log& log);
  HistoryJob(const HistoryJob&) = delete;
  HistoryJob& operator=(const HistoryJob&) = delete;
  // Finishes what is under way.
  ~HistoryJob();

  // Begins the work in the background: soon, and then every ten minutes.
  void Start();

  // Does one round. Errors: as Store::List() and Store::Commit(); what was done before stays done.
  absl::Status RunOnce();

 private:
  void Work();

  const HistoryLimits limits_;
  Store& store_;
  const os::Clock& clock_;
  telemetry::Log& log_;
  absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace spoke::ipam
