#include "ipam-server/ledger/decisions/expire.h"

#include <algorithm>
#include <string>

#include "ipam-server/ledger/decisions/conflict.h"
#include "ipam-server/ledger/decisions/demand.h"
#include "ipam-server/ledger/decisions/holdings.h"
#include "ipam-server/ledger/decisions/maintenance.h"
#include "ipam-server/ledger/decisions/nic.h"
#include "ipam-server/ledger/decisions/quarantine.h"

namespace spoke::ipam {
namespace {

void RemoveRecord(Fleet& fleet, const NodeKey& key, Effects& effects) {
  fleet.proved.erase(key);
  fleet.heard.erase(key);
  fleet.ledger.Unload(key);
  fleet.demands.erase(key);
  fleet.ending.erase(key);
  fleet.used_unheld.erase(key);
  if (FindByName(fleet.ledger, key.name) == nullptr) {
    effects.reservations.merge(fleet.reservations.OnNodeGone(key.name));
  }
  effects.changed.insert(key);
}

}  // namespace

Effects Expire(Fleet& fleet, absl::Time now) {
  Effects effects;
  // A clock that was set back must not make them count for longer.
  for (auto& [range, at] : fleet.judged) at = std::min(at, now);
  for (auto& [node, at] : fleet.forgettable) at = std::min(at, now + fleet.policy.replaced_stays);
  fleet.ledger.EndCooldowns(now);
  ForgetServed(fleet, effects, now);
  EndQuarantines(fleet, effects, now);
  EndDoubled(fleet, now);
  ExpireMaintenance(fleet, effects, now);
  SettleSome(fleet, effects, now);
  AdoptUsed(fleet, effects, now);
  for (const Reservation& ended : fleet.reservations.Expire(now)) {
    effects.reservations.insert(ended.name);
  }
  std::erase_if(fleet.forgettable, [&](const auto& waiting) {
    const NodeKey& key = waiting.first;
    NodeRecord* const node = fleet.ledger.Find(key);
    if (node == nullptr || !node->configurations.empty() || !node->wanted.empty()) return true;
    NodeRecord& record = *node;
    const bool cooldown =
        std::any_of(record.released.begin(), record.released.end(),
                    [&](const auto& entry) { return entry.second + fleet.policy.cooldown > now; });
    if (cooldown) return false;
    const bool retired = record.mode == NodeMode::kRetired;
    if (retired && waiting.second <= now) {
      RemoveRecord(fleet, key, effects);
      return true;
    }
    if (!record.released.empty()) {
      record.released.clear();
      effects.changed.insert(key);
    }
    return !retired;
  });
  return effects;
}

}  // namespace spoke::ipam
