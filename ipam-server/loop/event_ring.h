// The last events of the log, for operators who ask; every line goes on to the log behind it.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "lib/os/clock.h"
#include "lib/telemetry/log.h"

namespace spoke::ipam {

struct LoggedEvent {
  uint64_t number = 0;  // Rises by one with each event, from 1.
  absl::Time at;
  telemetry::Level level = telemetry::Level::kInfo;
  std::string event;
  std::vector<std::pair<std::string, std::string>> fields;
};

// Thread-safe.
class EventRing final : public telemetry::Log {
 public:
  static constexpr size_t kKept = 10'000;

  // Borrows both.
  EventRing(telemetry::Log& next, const os::Clock& clock) : next_(next), clock_(clock) {}

  void Write(telemetry::Level level, std::string_view event,
             std::initializer_list<telemetry::Field> fields) override;

  // The events behind number `after` that are still kept, oldest first; the newest `limit` of them.
  std::vector<LoggedEvent> Since(uint64_t after, size_t limit) const;

  // Waits up to `patience` for an event behind number `after`.
  void Await(uint64_t after, absl::Duration patience) const;

 private:
  telemetry::Log& next_;
  const os::Clock& clock_;
  mutable absl::Mutex mutex_;
  std::deque<LoggedEvent> events_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace spoke::ipam
