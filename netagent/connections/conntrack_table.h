// The kernel's table of tracked connections: counts who has how many, and deletes those of released
// addresses and those that a policy cuts. Implemented by NetlinkConntrackTable and, in tests,
// FakeConntrackTable; conntrack_table_contract.h holds the promises below as tests for both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>

#include "absl/status/status.h"
#include "lib/ip/address.h"
#include "netagent/connections/connection_passes.h"
#include "netagent/connections/connection_tally.h"
#include "netagent/egress/cut_rules.h"

namespace spoke::netagent {

// Not thread-safe; may be used by another thread than the one it was made on.
class ConntrackTable {
 public:
  // The most deletions in one call: a caller with more has the rest deleted by the next. A
  // deletion takes some microseconds, in which the table's other users are served.
  static constexpr size_t kMaxDeletions = 65'536;

  // The outcome of a call.
  struct Outcome {
    // OK: no connection of any of the addresses is left, of those that were there at the beginning.
    // Errors: kUnavailable and kResourceExhausted (try again; also when there are more than
    // kMaxDeletions); kPermissionDenied; kInternal; kDataLoss.
    absl::Status status;
    uint64_t seen = 0;     // Entries of the whole table.
    uint64_t deleted = 0;  // Entries gone, by others' deletion too.
    // The addresses that may still have connections: none when OK, all when the table could not be
    // listed.
    std::set<ip::Address> left;

    bool operator==(const Outcome&) const = default;
  };

  virtual ~ConntrackTable() = default;

  // Deletes every connection of which one of `addresses` is an end in either direction, in all
  // zones, and no other. It lists the table once, however many addresses there are. Blocks: some
  // 0.2 s for a table of 100,000 entries, and up to 5 s when the kernel does not answer.
  virtual Outcome DeleteConnectionsOf(const AddressSet& addresses) = 0;

  // Puts into `tally`, in place of what it has, every connection of the table, in all zones. Blocks
  // like a list for DeleteConnectionsOf(). Errors: kUnavailable (try again); kPermissionDenied;
  // kInternal; kDataLoss. Then the tally holds a part of the table.
  virtual absl::Status Count(ConnectionTally& tally) = 0;

  // The outcome of a cut.
  struct CutOutcome {
    // OK: every connection that was there at the beginning is what the rules make of it. Errors:
    // those of Outcome; what was done before one stays done.
    absl::Status status;
    CutsByRule found;       // The counts before; all 0 if the table cannot be listed.
    uint64_t ended = 0;     // Entries that were deleted: FlowFate::kEnded.
    uint64_t marked = 0;    // Entries that were marked: FlowFate::kCut.
    uint64_t released = 0;  // Entries that were deleted: FlowFate::kReleased.

    void Add(FlowFate fate) {
      ended += fate == FlowFate::kEnded ? 1 : 0;
      marked += fate == FlowFate::kCut ? 1 : 0;
      released += fate == FlowFate::kReleased ? 1 : 0;
    }
    bool operator==(const CutOutcome&) const = default;
  };
  // Whether to do the cut, or to find out what it would be.
  enum class Act : uint8_t { kCount, kCut };

  // Makes every connection, in all zones, what `rules` say. Changes at most kMaxDeletions in one
  // call. Blocks like DeleteConnectionsOf().
  virtual CutOutcome Cut(const CutRules& rules, Act act) = 0;
};

}  // namespace spoke::netagent
