#include "ipam-server/ledger/effects.h"

#include <iterator>

namespace spoke::ipam {

void Effects::Merge(Effects other) {
  changed.merge(other.changed);
  quarantined.merge(other.quarantined);
  reservations.merge(other.reservations);
  breaker = breaker || other.breaker;
  recovery = recovery || other.recovery;
  plan.merge(other.plan);
  attach.merge(other.attach);
  desired.merge(other.desired);
  resend.merge(other.resend);
  retry.merge(other.retry);
  for (auto& [key, ends] : other.end_assignments) {
    auto& mine = end_assignments[key];
    mine.insert(mine.end(), std::make_move_iterator(ends.begin()),
                std::make_move_iterator(ends.end()));
  }
  greet_anew.merge(other.greet_anew);
  renamed.merge(other.renamed);
  for (auto& [node, ranges] : other.reclaim) {
    auto& mine = reclaim[node];
    mine.insert(mine.end(), ranges.begin(), ranges.end());
  }
  findings.insert(findings.end(), std::make_move_iterator(other.findings.begin()),
                  std::make_move_iterator(other.findings.end()));
  attach_times.insert(attach_times.end(), other.attach_times.begin(), other.attach_times.end());
  history.insert(history.end(), std::make_move_iterator(other.history.begin()),
                 std::make_move_iterator(other.history.end()));
}

HistoryEntry EntryOf(HistoryEvent event, const NodeKey& node, const ip::Address& address,
                     absl::Time at, const Slot* slot) {
  HistoryEntry entry{
      .at = at, .event = event, .address = address, .node = node.name, .vm_id = node.vm_id};
  if (slot != nullptr && slot->lessee != nullptr) {
    entry.pod_namespace = slot->lessee->pod_namespace;
    entry.pod_name = slot->lessee->pod_name;
    entry.pod_uid = slot->lessee->pod_uid;
    entry.container_id = slot->lessee->container_id;
    entry.ifname = slot->lessee->ifname;
    entry.generation = slot->generation;
  }
  return entry;
}

bool Effects::Stores() const {
  return !changed.empty() || !quarantined.empty() || !reservations.empty() || breaker || recovery;
}

}  // namespace spoke::ipam
