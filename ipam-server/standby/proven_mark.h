// What a standby may take for proven of the store that it follows (ledger/recovery.h). Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "ipam-server/ledger/recovery.h"

namespace spoke::ipam {

// Whether the leader of `leadership` has found that its store is the newest there is: then a server
// that has seen all that was stored since need not ask nodes for it when it leads.
bool IsProven(const RecoveryState& stored, int64_t leadership);

// The mark of a proven store to be written beside it; nullopt: none, since `last`, the mark that
// lies there, is as new. A mark that is ahead of the store stays: it shows that the store was
// restored. The number of nodes with addresses is not known without decoding them all, and left 0:
// nodes' own marks tell it.
std::optional<StoreMark> ProvenMark(const RecoveryState& stored,
                                    const std::optional<StoreMark>& last);

}  // namespace spoke::ipam
