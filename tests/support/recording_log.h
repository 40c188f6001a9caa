// A log that keeps its events for a test to look at.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "lib/telemetry/log.h"

namespace spoke::testing_support {

// The log. Thread-safe.
class RecordingLog final : public telemetry::Log {
 public:
  void Write(telemetry::Level, std::string_view event,
             std::initializer_list<telemetry::Field> fields) override {
    absl::MutexLock lock(&mutex_);
    names_.emplace_back(event);
    lines_.push_back(telemetry::FormatEvent(event, fields));
  }

  // Returns how often `event` was written.
  int Count(std::string_view event) const {
    absl::MutexLock lock(&mutex_);
    return static_cast<int>(std::count(names_.begin(), names_.end(), event));
  }
  std::vector<std::string> lines() const {
    absl::MutexLock lock(&mutex_);
    return lines_;
  }

 private:
  mutable absl::Mutex mutex_;
  std::vector<std::string> names_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spoke::testing_support
