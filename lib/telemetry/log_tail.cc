#include "lib/telemetry/log_tail.h"

#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace spoke::telemetry {
namespace {

std::string_view NameOf(Level level) {
  switch (level) {
    case Level::kDebug:
      return "debug";
    case Level::kInfo:
      return "info";
    case Level::kWarn:
      return "warning";
    case Level::kError:
      return "error";
  }
  return "error";
}

}  // namespace

void LogTail::Write(Level level, std::string_view event, std::initializer_list<Field> fields) {
  behind_.Write(level, event, fields);
  if (level == Level::kDebug) return;
  std::string line =
      fmt::format("{} level={} event={}\n",
                  absl::FormatTime("%Y-%m-%d%ET%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone()),
                  NameOf(level), FormatEvent(event, fields));
  if (line.size() > max_bytes_) return;
  const absl::MutexLock lock(&mutex_);
  bytes_ += line.size();
  lines_.push_back(std::move(line));
  while (bytes_ > max_bytes_) {
    bytes_ -= lines_.front().size();
    lines_.pop_front();
  }
}

std::string LogTail::Text() const {
  const absl::MutexLock lock(&mutex_);
  std::string text;
  text.reserve(bytes_);
  for (const std::string& line : lines_) text += line;
  return text;
}

}  // namespace spoke::telemetry
