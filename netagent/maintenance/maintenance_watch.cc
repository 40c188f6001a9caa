#include "netagent/maintenance/maintenance_watch.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"

namespace spoke::netagent {

MaintenanceWatch::MaintenanceWatch(std::unique_ptr<MaintenanceSource> source, absl::Duration poll,
                                   telemetry::Log& log)
    : source_(std::move(source)), poll_(poll), log_(log) {}

MaintenanceWatch::~MaintenanceWatch() {
  {
    const absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  source_->Interrupt();
  if (thread_.joinable()) thread_.join();
}

void MaintenanceWatch::Start() {
  thread_ = std::thread([this] { Run(); });
}

std::optional<node_api::Maintenance> MaintenanceWatch::latest() const {
  const absl::MutexLock lock(&mutex_);
  return latest_;
}

void MaintenanceWatch::Begin(std::vector<std::string> events) {
  const absl::MutexLock lock(&mutex_);
  to_begin_.insert(to_begin_.end(), events.begin(), events.end());
}

void MaintenanceWatch::Run() {
  absl::Duration pause = poll_;
  while (true) {
    Look(pause);
    {
      const absl::MutexLock lock(&mutex_);
      const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stop_ || !to_begin_.empty();
      };
      mutex_.AwaitWithTimeout(absl::Condition(&ready), pause);
      if (stop_) return;
    }
    BeginSome();
  }
}

void MaintenanceWatch::Look(absl::Duration& pause) {
  auto said = source_->Read();
  if (absl::IsCancelled(said.status())) return;
  if (!said.ok()) {
    if (!std::exchange(failing_, true)) {
      log_.Warn("maintenance_source_fails", {{"error", said.status()}});
    }
    pause = std::min(std::max(2 * pause, absl::Milliseconds(1)), kLongestPause);
    return;
  }
  if (std::exchange(failing_, false)) log_.Info("maintenance_source_answers", {});
  pause = poll_;
  const absl::MutexLock lock(&mutex_);
  latest_ = *std::move(said);
}

void MaintenanceWatch::BeginSome() {
  std::vector<std::string> events;
  {
    const absl::MutexLock lock(&mutex_);
    events.swap(to_begin_);
  }
  if (events.empty()) return;
  const std::string names = fmt::format("{}", fmt::join(events, ","));
  if (const absl::Status begun = source_->Begin(events); !begun.ok()) {
    log_.Error("maintenance_start_failed", {{"events", names}, {"error", begun}});
  } else {
    log_.Info("maintenance_start_agreed", {{"events", names}});
  }
}

}  // namespace spoke::netagent
