#include "ipam-server/audit/audit_repair.h"

#include <map>

#include "ipam-server/ledger/decisions/report.h"

namespace spoke::ipam {
namespace {

NodeKey KeyOf(const AuditNode& node) { return {node.name, node.vm_id}; }

const node_api::Assignment* FindAssignment(
    const std::map<NodeKey, node_api::Inventory>& inventories, const NodeKey& key,
    const ip::Address& address) {
  const auto inventory = inventories.find(key);
  if (inventory == inventories.end()) return nullptr;
  for (const node_api::Assignment& assignment : inventory->second.in_use) {
    if (assignment.address == address) return &assignment;
  }
  return nullptr;
}

std::optional<StoredAddress> FindStored(const StoredNode& node, const ip::Address& address) {
  for (const StoredAddress& stored : node.addresses) {
    if (stored.address == address) return stored;
  }
  return std::nullopt;
}

}  // namespace

Compared ComparedOf(const AuditDifference& difference, const AuditSnapshot& snapshot) {
  Compared compared;
  if (!difference.address) return compared;
  const NodeKey key = KeyOf(difference.node);
  if (const auto stored = snapshot.stored.find(key); stored != snapshot.stored.end()) {
    compared.stored = FindStored(snapshot.input.store[stored->second], *difference.address);
  }
  const node_api::Assignment* const assignment =
      FindAssignment(snapshot.inventories, key, *difference.address);
  if (assignment != nullptr) compared.assignment = *assignment;
  return compared;
}

std::optional<Effects> Repair(Fleet& fleet, const AuditDifference& difference,
                              const Compared& compared, absl::Time now) {
  const NodeKey key = KeyOf(difference.node);
  const bool of_assignment = difference.repair == AuditRepair::kTakeAssignment ||
                             difference.repair == AuditRepair::kEndAssignment;
  if (of_assignment) {
    const NodeRecord* record = fleet.ledger.Find(key);
    if (record == nullptr) return std::nullopt;
    if (FindStored(StoredNodeOf(*record, fleet.ledger.quarantine()), *difference.address) !=
        compared.stored)
      return std::nullopt;
  }
  Effects effects;
  switch (difference.repair) {
    case AuditRepair::kNone:
      return std::nullopt;
    case AuditRepair::kReattach:
    case AuditRepair::kDetach:
      // The NIC as the record has it: with the address, or without.
      effects.attach.insert(key);
      break;
    case AuditRepair::kResendDesired:
      effects.resend.insert(key);
      break;
    case AuditRepair::kTakeAssignment:
      if (!compared.assignment) return std::nullopt;
      effects = OnAuditedAssignment(fleet, key, *compared.assignment, now);
      break;
    case AuditRepair::kEndAssignment:
      if (!compared.stored) return std::nullopt;
      effects = OnReport(fleet, key,
                         {.released = {{.address = *difference.address,
                                        .generation = compared.stored->generation}}},
                         now);
      break;
  }
  return effects;
}

}  // namespace spoke::ipam
