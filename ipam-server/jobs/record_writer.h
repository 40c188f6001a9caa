// Turns what was decided into one commit, and remembers which revisions the store has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ipam-server/core/fleet.h"
#include "ipam-server/jobs/mailbox.h"
#include "ipam-server/jobs/server_state.h"
#include "ipam-server/store/store.h"

namespace spoke::ipam {

// Not thread-safe; the loop owns it.
class RecordWriter {
 public:
  // Borrows `store`.
  explicit RecordWriter(Store& store) : store_(store) {}

  // At start, and whenever the state was read anew.
  void Reset(Revisions revisions, const HistoryKeyParts& newest_chunk);

  // Stores, in one commit, all that `effects` names as it now stands in `fleet`, `raw` as it is,
  // and the history of `effects` in chunks of its own. Returns how many records that were.
  // Errors: as Store::Commit(); what was known of revisions is then no longer to be trusted.
  absl::StatusOr<size_t> Commit(const Effects& effects, const RawRecords& raw, const Fleet& fleet,
                                absl::Time now);

  // Whether a commit gets through, when the last one did not. Errors: as Store::Commit().
  absl::Status Probe();

 private:
  void Put(std::string key, std::optional<std::string> value, std::vector<CompareAndPut>& puts);

  Store& store_;
  Revisions revisions_;
  HistoryBuffer history_;
};

}  // namespace spoke::ipam
