// Deletes the tracked connections of addresses in cooldown, so that the next pod does not meet
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

// Counts since the agent's start, except `waiting`.
struct ConnectionClearingCounts {
  uint64_t passes = 0;
  uint64_t failed = 0;   // Those passes that left something.
  uint64_t deleted = 0;  // Entries of the table.
  absl::Duration took;   // The time of all passes together.
  uint64_t waiting = 0;  // Addresses that wait now.
};

// Not thread-safe; the agent's one loop owns it.
class ConnectionClearing {
 public:
  struct Edges {
    ConntrackTable& table;  // Used on another thread while a pass is under way.
    const os::Clock& clock;
    telemetry::Log& log;
    // Runs work on the loop's thread, later. Thread-safe. The loop must not run anything of a
    // ConnectionClearing that is gone.
    std::function<void(std::function<void()>)> post;
  };
  // Borrows edges and `attachments`, which must be made with `cooldown` and clearing_required.
  ConnectionClearing(absl::Duration cooldown, const Edges& edges, Attachments& attachments);
  ConnectionClearing(const ConnectionClearing&) = delete;
  ConnectionClearing& operator=(const ConnectionClearing&) = delete;
  // Waits for the pass that is under way, as long as the kernel takes for it.
  ~ConnectionClearing();

  // Begins a pass if one is due. Call it when the addresses in cooldown change, and at NextWake().
  void Tick();
  // When to call Tick(); nullopt: nothing waits, or a pass is under way, whose end is posted.
  std::optional<absl::Time> NextWake() const;

  ConnectionClearingCounts counts() const;

 private:
  void OnEnded(const std::set<ip::Address>& of, const ConntrackTable::Outcome& outcome);

  const Edges edges_;
  Attachments& attachments_;
  ConnectionPasses passes_;
  absl::Time begun_ = absl::InfinitePast();
  ConnectionClearingCounts counts_;
  absl::Status last_failure_;  // The last pass's, for saying each kind of failure once.
  std::thread thread_;
};

}  // namespace spoke::netagent
