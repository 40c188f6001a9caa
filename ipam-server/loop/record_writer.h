// Turns what was decided into one commit, and remembers which revisions the store has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ipam-server/ledger/effects.h"
#include "ipam-server/ledger/fleet.h"
#include "ipam-server/loop/mailbox.h"
#include "ipam-server/loop/server_state.h"
#include "ipam-server/store/store.h"
#include "lib/base/rate_book.h"

namespace spoke::ipam {

// Not thread-safe; the loop owns it.
class RecordWriter {
 public:
  // How many entries of what pods of one node take and give up the history gets. It has room for so
  // much, and a node must not push out what is known of the others: no honest one starts two pods a
  // second for hours.
  static constexpr base::Rate kHistoryOfNode{.burst = 20'000, .refill = absl::Milliseconds(200)};
  static constexpr size_t kMostNodes = 32'768;  // Others are not limited.

  // Borrows `store`.
  explicit RecordWriter(Store& store) : store_(store) {}

  // Takes what was read at start, or whenever the state was read anew.
  void Reset(Revisions revisions, const HistoryKeyParts& newest_chunk);

  struct Decided {
    const Effects& effects;
    const RawRecords& raw;
    const Fleet& fleet;
    const RecoveryState& next;  // What is stored of the store itself, if anything is stored.
  };
  // Stores, in stages as Stage has them, all that the effects name as it now stands in the fleet,
  // `raw` as it is, the history of the effects in chunks of its own, and `next`: in one commit of
  // the store, or in two if it is large and there are nodes that lose some and take others. Returns
  // how many writes that were. Errors: as Store::Commit(); what was known of revisions is then no
  // longer to be trusted.
  absl::StatusOr<size_t> Commit(const Decided& decided, absl::Time now);

  // Returns the names of nodes of which entries were left out of the history since it was called
  // last, each once an hour at most.
  std::vector<std::string> TakeOmitted() { return std::exchange(omitted_, {}); }

  // Whether the last commit was so large that, if it failed, a part of it may be stored.
  bool last_in_parts() const { return last_in_parts_; }

  // Whether a commit as large as the last one that failed gets through. Errors: as Store::Commit().
  absl::Status Probe();

 private:
  absl::Status Commit(const std::vector<CompareAndPut>& puts);
  absl::StatusOr<size_t> CommitLosses(const Effects& effects, const Fleet& fleet,
                                      std::vector<CompareAndPut>& puts);
  void PutNodes(const Effects& effects, const Fleet& fleet, std::vector<CompareAndPut>& puts);
  void Put(std::string key, std::optional<std::string> value, std::vector<CompareAndPut>& puts);

  void AppendHistory(const Effects& effects, absl::Time now);

  absl::Status WriteProbes(size_t bytes);

  Store& store_;
  bool last_in_parts_ = false;
  size_t failed_bytes_ = 0;  // The size of the last commit that failed.
  Revisions revisions_;
  HistoryBuffer history_;
  base::RateBook history_rates_{kHistoryOfNode, kMostNodes};
  base::RateBook told_{{.burst = 1, .refill = absl::Hours(1)}, kMostNodes};
  std::vector<std::string> omitted_;
};

}  // namespace spoke::ipam
