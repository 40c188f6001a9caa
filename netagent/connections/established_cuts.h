// Ends the connections that were there before a policy which does not admit them
// (egress/cut_rules.h), and counts beforehand how many those are. The kernel's table is looked
// through on a thread of its own, one look at a time; only the caller that asked waits for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/os/clock.h"
#include "lib/telemetry/log.h"
#include "netagent/connections/conntrack_table.h"
#include "netagent/egress/cut_rules.h"

namespace spoke::netagent {

// Counts since the agent's start.
struct EstablishedCutCounts {
  uint64_t peer_spoke = 0;  // Connections that were ended, by what ended them.
  uint64_t egress = 0;
  uint64_t failed = 0;  // Looks that left something.
};

// Not thread-safe; the agent's one loop owns it.
class EstablishedCuts {
 public:
  using CountDone = std::function<void(absl::StatusOr<CutsByRule>)>;

  struct Edges {
    ConntrackTable& table;  // Used by nobody else, and on another thread while a look is under way.
    const os::Clock& clock;
    telemetry::Log& log;
    // Runs work on the loop's thread, later. Thread-safe. The loop must not run anything of an
    // EstablishedCuts that is gone.
    std::function<void(std::function<void()>)> post;
  };
  // The pause before a cut that left something is tried again.
  static constexpr absl::Duration kRetryPause = absl::Seconds(10);
  static constexpr size_t kMaxWaiting = 4;  // Counts; the next is answered kResourceExhausted.

  explicit EstablishedCuts(const Edges& edges) : edges_(edges) {}
  EstablishedCuts(const EstablishedCuts&) = delete;
  EstablishedCuts& operator=(const EstablishedCuts&) = delete;
  // Waits for the look that is under way.
  ~EstablishedCuts();

  // Cuts what `rules` say, in place of what was to be cut before. Call it once they are in force.
  void Cut(CutRules rules);
  // Calls `done` later, on the loop's thread, with what Cut(rules) would find. Errors: those of
  // ConntrackTable::Cut().
  void Count(CutRules rules, CountDone done);

  // Begins what is due. Call at NextWake().
  void Tick();
  // When to call Tick(); nullopt: nothing waits, or a look is under way, whose end is posted.
  std::optional<absl::Time> NextWake() const;

  const EstablishedCutCounts& counts() const { return counts_; }

 private:
  struct Counting {
    CutRules rules;
    CountDone done;
  };
  void Begin(CutRules rules, ConntrackTable::Act act,
             std::function<void(const ConntrackTable::CutOutcome&)> ended);
  void OnCut(const ConntrackTable::CutOutcome& outcome);

  const Edges edges_;
  std::optional<CutRules> to_cut_;
  absl::Time cut_at_ = absl::InfinitePast();
  bool anew_ = false;  // Whether Cut() has been called since the look began.
  std::deque<Counting> to_count_;
  bool busy_ = false;
  // Whether entries may bear claims::kFlowCut, of this agent or one before it.
  bool may_have_cut_ = true;
  EstablishedCutCounts counts_;
  absl::Status last_failure_;  // The last one, for saying each kind of failure once.
  std::thread thread_;
};

}  // namespace spoke::netagent
