#include "ipam-server/standby/proven_mark.h"

namespace spoke::ipam {

bool IsProven(const RecoveryState& stored, int64_t leadership) {
  return !stored.cause && leadership != 0 && stored.opened_under == leadership;
}

std::optional<StoreMark> ProvenMark(const RecoveryState& stored,
                                    const std::optional<StoreMark>& last) {
  if (last && last->store_id == stored.store_id && last->epoch >= stored.epoch) {
    return std::nullopt;
  }
  return StoreMark{.store_id = stored.store_id, .epoch = stored.epoch, .nodes = 0};
}

}  // namespace spoke::ipam
