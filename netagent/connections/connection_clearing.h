// Deletes the tracked connections of addresses that cool down, so that the next pod does not meet
// them: observes what waits, lets connections/connection_passes decide when, has the kernel's table
// looked through on a thread of its own, and tells Attachments what is done. No request waits for
// it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "lib/os/clock.h"
#include "lib/telemetry/log.h"
#include "netagent/attach/attachments.h"
#include "netagent/connections/connection_passes.h"
#include "netagent/connections/conntrack_table.h"

namespace spoke::netagent {

// Since the agent's start, but for the last.
struct ConnectionClearingCounts {
  uint64_t passes = 0;
  uint64_t failed = 0;   // Of these, the ones that left something.
  uint64_t deleted = 0;  // Entries of the table.
  absl::Duration took;   // All of them together.
  uint64_t waiting = 0;  // Addresses, now.
};

// Not thread-safe; the agent's one loop owns it.
class ConnectionClearing {
 public:
  struct Edges {
    ConntrackTable& table;  // Used on another thread while a pass is under way.
    const os::Clock& clock;
    telemetry::Log& log;
    // Runs work on the loop's thread, later. Thread-safe. The loop must not run anything of one
    // that is gone.
    std::function<void(std::function<void()>)> post;
  };
  // Borrows all. `attachments` has to have been made with `cooldown` and clearing_required.
  ConnectionClearing(absl::Duration cooldown, const Edges& edges, Attachments& attachments);
  ConnectionClearing(const ConnectionClearing&) = delete;
  ConnectionClearing& operator=(const ConnectionClearing&) = delete;
  // Waits for the pass that is under way, as long as the kernel takes for it.
  ~ConnectionClearing();

  // Begins a pass if one is due. Call after every change of what cools, and at NextWake().
  void Tick();
  // nullopt: nothing waits, or a pass is under way, whose end is posted.
  std::optional<absl::Time> NextWake() const;

  ConnectionClearingCounts counts() const;

 private:
  void OnEnded(const std::set<ip::Address>& of, const ConntrackTable::Outcome& outcome);

  const Edges edges_;
  Attachments& attachments_;
  ConnectionPasses passes_;
  absl::Time begun_ = absl::InfinitePast();
  ConnectionClearingCounts counts_;
  absl::Status last_failure_;  // Of the last pass; for saying each kind of failure once.
  std::thread thread_;
};

}  // namespace spoke::netagent
