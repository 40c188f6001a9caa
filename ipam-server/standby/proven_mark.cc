#include "ipam-server/standby/proven_mark.h"

namespace spoke::ipam {

std::optional<StoreMark> ProvenMark(const RecoveryState& stored, absl::Duration led_for,
                                    const std::optional<StoreMark>& last) {
  if (stored.cause || led_for < kProvenAfter) return std::nullopt;
  if (last && last->store_id == stored.store_id && last->epoch >= stored.epoch) {
    return std::nullopt;
  }
  return StoreMark{.store_id = stored.store_id, .epoch = stored.epoch, .nodes = 0};
}

}  // namespace spoke::ipam
