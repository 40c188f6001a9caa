// What a standby may take for proven of the store that it follows (ledger/recovery.h). Pure.
#pragma once

#include <optional>

#include "absl/time/time.h"
#include "ipam-server/ledger/recovery.h"

namespace spoke::ipam {

// Whoever has led for so long has proved that its store is the newest: a leader that begins gives
// nodes Recovery::kProvingTime to show more, and stores it when one does. The rest is for its
// start.
inline constexpr absl::Duration kProvenAfter = absl::Seconds(70);
static_assert(kProvenAfter > Recovery::kProvingTime);

// The mark to be written beside the store, so that this server, when it leads, need not ask nodes
// whether the store is the newest; nullopt: none, since `stored` is in a recovery, or its leader
// has led for less than kProvenAfter (`led_for`, as this server has seen it), or `last`, the mark
// that lies there, is as new. A mark that is ahead of the store stays: it shows that the store was
// restored. The number of nodes with addresses is not known without decoding them all, and left 0:
// nodes' own marks tell it.
std::optional<StoreMark> ProvenMark(const RecoveryState& stored, absl::Duration led_for,
                                    const std::optional<StoreMark>& last);

}  // namespace spoke::ipam
