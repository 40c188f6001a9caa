#include "ipam-server/loop/event_ring.h"

#include <algorithm>

namespace spoke::ipam {

void EventRing::Write(telemetry::Level level, std::string_view event,
                      std::initializer_list<telemetry::Field> fields) {
  next_.Write(level, event, fields);
  if (level == telemetry::Level::kDebug) return;
  LoggedEvent logged{.at = clock_.Now(), .level = level, .event = std::string(event)};
  for (const telemetry::Field& field : fields) {
    logged.fields.emplace_back(field.key, field.value);
  }
  absl::MutexLock lock(&mutex_);
  logged.number = ++last_;
  events_.push_back(std::move(logged));
  if (events_.size() > kKept) events_.pop_front();
}

std::vector<LoggedEvent> EventRing::Since(uint64_t after, size_t limit) const {
  absl::MutexLock lock(&mutex_);
  auto begin = std::find_if(events_.begin(), events_.end(),
                            [&](const LoggedEvent& event) { return event.number > after; });
  const auto count = static_cast<size_t>(events_.end() - begin);
  if (count > limit) begin += static_cast<ptrdiff_t>(count - limit);
  return {begin, events_.end()};
}

void EventRing::Await(uint64_t after, absl::Duration patience) const {
  absl::MutexLock lock(&mutex_);
  const auto newer = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return last_ > after; };
  mutex_.AwaitWithTimeout(absl::Condition(&newer), patience);
}

}  // namespace spoke::ipam
