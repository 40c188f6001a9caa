#include "ipam-server/ledger/decisions/report.h"

#include <vector>

#include "fmt/core.h"
#include "ipam-server/ledger/decisions/conflict.h"
#include "ipam-server/ledger/decisions/demand.h"
#include "ipam-server/ledger/decisions/holdings.h"
#include "ipam-server/ledger/decisions/plan.h"
#include "ipam-server/ledger/decisions/quarantine.h"

namespace spoke::ipam {

Effects OnReport(Fleet& fleet, const NodeKey& key, const node_api::AssignmentReport& report,
                 absl::Time now) {
  Effects effects;
  NodeRecord* const node = fleet.ledger.Find(key);
  if (node == nullptr) return effects;
  NodeRecord& record = *node;
  std::vector<const node_api::Assignment*> taken;
  for (const node_api::Assignment& assignment : report.in_use) {
    Configuration* configuration = record.Holding(assignment.address);
    if (configuration == nullptr) {
      NoteUnheld(fleet, key, assignment.address);
      const NodeRecord* holder = HolderOf(fleet.ledger, assignment.address);
      if (holder == nullptr ||
          !NoteClaim(fleet, key, *holder, assignment.address, "has a pod that uses it")) {
        continue;
      }
      effects.findings.push_back(
          {Finding::Kind::kHeldElsewhere, key, assignment.address,
           fmt::format("held by node {} ({})", holder->key.name, holder->key.vm_id)});
      continue;
    }
    if (assignment.generation <= configuration->At(assignment.address).generation) continue;
    RecordAssignment(fleet, record, *configuration, assignment, effects);
    taken.push_back(&assignment);
  }
  if (!taken.empty()) ServeWaiting(fleet, key, taken, now);
  // A release counts too: a node with addresses in cooldown may need more than before.
  bool changed = !taken.empty();
  for (const node_api::Release& release : report.released) {
    if (EndUnheld(fleet, key, release.address)) effects.attach.insert(key);
    Configuration* configuration = record.Holding(release.address);
    if (configuration == nullptr) {
      EndClaim(fleet, key, release.address);
      continue;
    }
    Slot& slot = configuration->At(release.address);
    if (slot.use != Use::kInUse && slot.generation < release.generation) {
      // An assignment that was never heard of has come and gone; whoever still speaks of it is
      // late.
      slot.generation = release.generation;
      effects.changed.insert(key);
    }
    if (slot.use != Use::kInUse || slot.generation != release.generation) continue;
    SetUse(fleet, record, *configuration, {release.address, Use::kCooldown, nullptr, now}, effects);
    changed = true;
  }
  for (const ip::Address& address : report.cooled) {
    Configuration* configuration = record.Holding(address);
    if (configuration == nullptr || configuration->At(address).use != Use::kCooldown) continue;
    SetUse(fleet, record, *configuration, {address, Use::kAvailable, nullptr, now}, effects);
    changed = true;
  }
  if (!changed) return effects;
  effects.changed.insert(key);
  if (!report.cooled.empty()) AskForWithheld(fleet, record, effects, now);
  effects.Merge(PlanNode(fleet, key, now));
  return effects;
}

Effects OnAuditedAssignment(Fleet& fleet, const NodeKey& key,
                            const node_api::Assignment& assignment, absl::Time now) {
  Effects effects;
  NodeRecord* const node = fleet.ledger.Find(key);
  if (node == nullptr) return effects;
  TakeAssignment(fleet, *node, assignment, effects);
  effects.changed.insert(key);
  effects.Merge(PlanNode(fleet, key, now));
  return effects;
}

}  // namespace spoke::ipam
