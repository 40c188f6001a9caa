// What a standby may take for proven of the store that it follows (ledger/recovery.h). Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "ipam-server/ledger/recovery.h"

namespace spoke::ipam {

// Whether a leader has found that its store is the newest there is, while this server has heard of
// all that was written: then it need not ask nodes for that when it leads. Not thread-safe.
//
// A restored snapshot has the key of a leader that is no more, and what that one had written. So
// only what is written while this server follows counts, and nothing of before the mirror was read
// anew, or was behind.
class FollowedStore {
 public:
  // For how long the mirror may not be known to be complete.
  static constexpr absl::Duration kMostAge = absl::Seconds(10);

  // How the mirror stands: as etcd::MirrorStats.
  struct Mirrored {
    int64_t full_reads = 0;
    absl::Duration age;
  };
  // Takes the store's record as it is mirrored, with its revision, while `leadership` leads.
  void Look(const Mirrored& mirror, const RecoveryState& stored, int64_t revision,
            int64_t leadership);
  bool IsProven(const Mirrored& mirror) const {
    return proven_ && mirror.full_reads == full_reads_ && mirror.age <= kMostAge;
  }

 private:
  bool proven_ = false;
  int64_t full_reads_ = 0;  // When it began to follow; 0: it does not.
  int64_t from_ = 0;        // The revision of the store's record then.
};

// The mark of a proven store to be written beside it; nullopt: none, since `last`, the mark that
// lies there, is as new. A mark that is ahead of the store stays: it shows that the store was
// restored. The number of nodes with addresses is not known without decoding them all, and left 0:
// nodes' own marks tell it.
std::optional<StoreMark> ProvenMark(const RecoveryState& stored,
                                    const std::optional<StoreMark>& last);

}  // namespace spoke::ipam
