#include "ipam-server/standby/proven_mark.h"

namespace spoke::ipam {

void FollowedStore::Look(const Mirrored& mirror, const RecoveryState& stored, int64_t revision,
                         int64_t leadership) {
  if (mirror.age > kMostAge) {
    proven_ = false;
    full_reads_ = 0;
    return;
  }
  if (mirror.full_reads != full_reads_) {
    proven_ = false;
    full_reads_ = mirror.full_reads;
    from_ = revision;
  }
  const bool opened = !stored.cause && leadership != 0 && stored.opened_under == leadership;
  if (opened && revision > from_) proven_ = true;
}

std::optional<StoreMark> ProvenMark(const RecoveryState& stored,
                                    const std::optional<StoreMark>& last) {
  if (last && last->store_id == stored.store_id && last->epoch >= stored.epoch) {
    return std::nullopt;
  }
  return StoreMark{.store_id = stored.store_id, .epoch = stored.epoch, .nodes = 0};
}

}  // namespace spoke::ipam
