// A log that passes everything on and keeps its last lines, for whoever asks later.
#pragma once

#include <cstddef>
#include <deque>
#include <initializer_list>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "lib/telemetry/log.h"

namespace spoke::telemetry {

// Thread-safe.
class LogTail final : public Log {
 public:
  // Borrows `behind`. Keeps lines of up to `max_bytes` together, the newest; those of kDebug are
  // only passed on.
  LogTail(Log& behind, size_t max_bytes) : behind_(behind), max_bytes_(max_bytes) {}

  void Write(Level level, std::string_view event, std::initializer_list<Field> fields) override;

  // Returns the lines that are kept, the oldest first, each with its end: time, level and event as
  // NewStderrLog() writes them.
  std::string Text() const;

 private:
  Log& behind_;
  const size_t max_bytes_;
  mutable absl::Mutex mutex_;
  std::deque<std::string> lines_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // Of `lines_`.
};

}  // namespace spoke::telemetry
