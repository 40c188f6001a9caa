// Tells the server what maintenance is announced for the node: once in each session as soon as it
// is known, and when it changes.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "lib/node_api/maintenance.h"
#include "lib/os/clock.h"

namespace spoke::netagent {

// Not thread-safe; belongs to the agent's loop.
class MaintenanceReport {
 public:
  static constexpr absl::Duration kLook = absl::Seconds(1);

  // Both functions are called on the loop's thread, and must not block. `read` returns nullopt
  // while it is not known; a null one knows that there is none.
  struct Edges {
    const os::Clock& clock;
    std::function<std::optional<node_api::Maintenance>()> read;
    std::function<void(const node_api::Maintenance&)> tell;
  };
  explicit MaintenanceReport(Edges edges) : edges_(std::move(edges)) {}

  // Notes that a session has begun: its server knows of nothing.
  void OnSession();
  // Looks when kLook is over.
  void Tick();
  absl::Time NextWake() const { return next_; }
  // What the server was told in this session; nullopt: nothing yet.
  const std::optional<node_api::Maintenance>& told() const { return told_; }

 private:
  const Edges edges_;
  std::optional<node_api::Maintenance> told_;  // In this session; nullopt: nothing yet.
  absl::Time next_ = absl::InfiniteFuture();   // Nobody listens before the first session.
};

}  // namespace spoke::netagent
