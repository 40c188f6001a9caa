// The faults that the world knows, and how often each has happened. A default run in which one of
// them never happened has proved less than it says, so it fails.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace spoke::sim {

enum class Fault : uint8_t {
  kAgentKilled,
  kAgentKilledInAStep,
  kAgentPaused,
  kJournalTorn,
  kJournalFull,
  kKernelRefuses,
  kLinkTakenAway,
  kNodeRebooted,
  kVmReplaced,
  kVmGone,
  kServerKilled,
  kServerKilledInACommit,
  kServerPaused,
  kStoreFails,
  kStoreAnswerLost,
  kStoreUnreachable,
  kCommitInChunks,
  kDeposedLeaderRefused,
  kTakeover,
  kBackupRestored,
  kConnectionBroken,
  kConnectionHalfOpen,
  kPartition,
  kCloudRefuses,
  kCloudAnswerLost,
  kCloudSlow,
  kListingStale,
  kListingShort,
  kClockJumped,
  kAddRepeated,
  kAddGivenUp,
  kDelLost,
  kDelLate,
  kDelDoubled,
  kDelTombstone,
  kRuntimeKilled,
  kBurst,
  kDrain,
  kReservation,
  kQuarantine,
  kLast = kQuarantine,
};

inline constexpr size_t kFaults = static_cast<size_t>(Fault::kLast) + 1;

inline constexpr std::array<std::string_view, kFaults> kFaultNames = {
    "agent_killed",
    "agent_killed_in_a_step",
    "agent_paused",
    "journal_torn",
    "journal_full",
    "kernel_refuses",
    "link_taken_away",
    "node_rebooted",
    "vm_replaced",
    "vm_gone",
    "server_killed",
    "server_killed_in_a_commit",
    "server_paused",
    "store_fails",
    "store_answer_lost",
    "store_unreachable",
    "commit_in_chunks",
    "deposed_leader_refused",
    "takeover",
    "backup_restored",
    "connection_broken",
    "connection_half_open",
    "partition",
    "cloud_refuses",
    "cloud_answer_lost",
    "cloud_slow",
    "listing_stale",
    "listing_short",
    "clock_jumped",
    "add_repeated",
    "add_given_up",
    "del_lost",
    "del_late",
    "del_doubled",
    "del_tombstone",
    "runtime_killed",
    "burst",
    "drain",
    "reservation",
    "quarantine",
};

inline std::string_view NameOf(Fault fault) { return kFaultNames[static_cast<size_t>(fault)]; }

class Coverage {
 public:
  void Count(Fault fault) { ++counts_[static_cast<size_t>(fault)]; }
  uint64_t of(Fault fault) const { return counts_[static_cast<size_t>(fault)]; }
  Coverage& operator+=(const Coverage& other) {
    for (size_t i = 0; i < kFaults; ++i) counts_[i] += other.counts_[i];
    return *this;
  }

 private:
  std::array<uint64_t, kFaults> counts_{};
};

}  // namespace spoke::sim
