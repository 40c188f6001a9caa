// Asks a source again and again what maintenance is announced for this node, on a thread of its
// own, since the source may take its time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "lib/telemetry/log.h"
#include "netagent/maintenance/maintenance_source.h"

namespace spoke::netagent {

// Thread-safe, except Start().
class MaintenanceWatch {
 public:
  // The longest pause while the source fails; each is twice the one before.
  static constexpr absl::Duration kLongestPause = absl::Seconds(30);

  // `poll`: the pause between two questions. Borrows `log`.
  MaintenanceWatch(std::unique_ptr<MaintenanceSource> source, absl::Duration poll,
                   telemetry::Log& log);
  MaintenanceWatch(const MaintenanceWatch&) = delete;
  MaintenanceWatch& operator=(const MaintenanceWatch&) = delete;
  ~MaintenanceWatch();

  // Begins to ask. Call it once.
  void Start();

  // Returns what was said last, however long ago: a source that fails announces nothing new, and
  // takes nothing back. nullopt: it has not answered yet.
  std::optional<node_api::Maintenance> latest() const;

  // Agrees, soon, that these events begin. What becomes of it is logged.
  void Begin(std::vector<std::string> events);

 private:
  void Run();
  void Look(absl::Duration& pause);
  void BeginSome();

  const std::unique_ptr<MaintenanceSource> source_;
  const absl::Duration poll_;
  telemetry::Log& log_;
  mutable absl::Mutex mutex_;
  std::optional<node_api::Maintenance> latest_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> to_begin_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  bool failing_ = false;  // The last question failed, and that was logged. The thread's own.
  std::thread thread_;
};

}  // namespace spoke::netagent
