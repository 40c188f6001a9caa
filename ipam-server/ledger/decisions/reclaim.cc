#include "ipam-server/ledger/decisions/reclaim.h"

#include "ipam-server/ledger/decisions/plan.h"

namespace spoke::ipam {

Effects OnReclaimAnswer(Fleet& fleet, const NodeKey& key, const node_api::ReclaimAnswer& answer,
                        absl::Time now) {
  Effects effects;
  NodeRecord* const node = fleet.ledger.Find(key);
  if (node == nullptr) return effects;
  NodeRecord& record = *node;
  const auto find = [&](const ip::Prefix& range) -> Configuration* {
    const auto it = record.configurations.find(range.base());
    return it == record.configurations.end() || it->second.range != range ? nullptr : &it->second;
  };
  for (const ip::Prefix& range : answer.agreed) {
    Configuration* configuration = find(range);
    if (configuration == nullptr) continue;
    // What it assigns according to its own reports it cannot have given up.
    if (!configuration->IsAvailable()) {
      TakeBack(fleet, range, effects, now);
      continue;
    }
    const auto next = Next(configuration->state, AddressEvent::kAgentAgreed);
    if (!next || *next == configuration->state) continue;
    fleet.ledger.SetState(*configuration, *next, now);
    fleet.judged.erase(range);
    effects.changed.insert(key);
    effects.attach.insert(key);
    effects.desired.insert(key);
  }
  for (const ip::Prefix& range : answer.denied) {
    Configuration* configuration = find(range);
    if (configuration == nullptr) continue;
    configuration->denied_until = now + fleet.policy.release.denial_backoff;
    effects.changed.insert(key);
    TakeBack(fleet, range, effects, now);
  }
  return effects;
}

}  // namespace spoke::ipam
