#include "ipam-server/ledger/decisions/inventory.h"

#include <algorithm>
#include <string>
#include <utility>

#include "fmt/core.h"
#include "ipam-server/ledger/decisions/conflict.h"
#include "ipam-server/ledger/decisions/holdings.h"

namespace spoke::ipam {
namespace {

bool IsInUse(const Configuration& configuration) {
  return std::any_of(configuration.slots.begin(), configuration.slots.end(),
                     [](const Slot& slot) { return slot.use == Use::kInUse; });
}

// The node has been told of the unit by a store that knew more, whoever has it here.
void TakeOver(Fleet& fleet, NodeRecord& record, const ip::Prefix& unit, Effects& effects,
              absl::Time now) {
  const PoolEntry* entry = fleet.ledger.pools().Offering(unit.base());
  std::string detail = "was free here; the node was told of it, and keeps it";
  if (const std::string why = WhyNotAdopted(fleet, record, *entry); !why.empty()) {
    effects.findings.push_back({Finding::Kind::kRefused, record.key, unit.base(), why});
    return;
  }
  if (const NodeRecord* holder = entry->pool.OwnerOf(unit.base()); holder != nullptr) {
    NodeRecord& former = *fleet.ledger.Find(holder->key);
    detail = fmt::format("was on node {} here; this node was told of it since, and keeps it",
                         former.key.name);
    fleet.off_nic.erase(unit.base());
    fleet.ledger.Release(former, unit.base(), now);
    former.released.erase(unit);  // Its next node has it already.
    effects.changed.insert(former.key);
    // A store that writes in stages takes it from the former node first.
    effects.history.push_back(EntryOf(HistoryEvent::kDetached, former.key, unit.base(), now));
  }
  fleet.hold.doubtful.erase(unit);
  // The node would not hold it, had it not been attached: so it can go on.
  HoldClaimed(fleet, record, unit, AddressState::kAttached, now);
  effects.changed.insert(record.key);
  effects.history.push_back(EntryOf(HistoryEvent::kAdopted, record.key, unit.base(), now));
  effects.findings.push_back({Finding::Kind::kAdopted, record.key, unit.base(), std::move(detail)});
}

}  // namespace

absl::Status CheckNotHeld(const Fleet& fleet) {
  if (!fleet.hold.active) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "nothing is assigned or taken back while a recovery is under way; see: spokectl recovery "
      "show");
}

Effects OnInventory(Fleet& fleet, const NodeKey& key, const node_api::Inventory& inventory,
                    absl::Time now) {
  Effects effects;
  NodeRecord* const node = fleet.ledger.Find(key);
  if (!fleet.hold.active || node == nullptr) return effects;
  NodeRecord& record = *node;
  std::set<ip::Address> holds(inventory.held.begin(), inventory.held.end());
  for (const auto& [base, configuration] : record.configurations) {
    const ip::Prefix range = configuration.range;
    const auto in_it = holds.lower_bound(range.base());
    const bool there = in_it != holds.end() && range.Contains(*in_it);
    if (there) {
      fleet.hold.doubtful.erase(range);
    } else {
      fleet.hold.doubtful.insert(range);
    }
  }
  std::erase_if(fleet.hold.claims, [&](const auto& claim) { return claim.second == key; });
  for (const ip::Address& address : holds) {
    const PoolEntry* entry = fleet.ledger.pools().Offering(address);
    if (entry == nullptr) continue;  // It is said when assigned: see TakeAssignment().
    const ip::Prefix unit = *entry->pool.UnitOf(address);
    const NodeRecord* holder = entry->pool.OwnerOf(address);
    if (holder == &record) {
      Configuration& configuration = record.configurations.at(unit.base());
      if (configuration.state == AddressState::kAttaching) {  // It was taken over from its hello.
        fleet.ledger.SetState(configuration, AddressState::kAttached, now);
      }
      continue;
    }
    if (holder != nullptr && !fleet.hold.doubtful.contains(unit)) {
      fleet.hold.claims.try_emplace(unit, key);  // Its holder has yet to speak.
      continue;
    }
    TakeOver(fleet, record, unit, effects, now);
  }
  // An inventory need not say whose pods they are; a hello does.
  const bool unheard = std::any_of(
      inventory.in_use.begin(), inventory.in_use.end(),
      [&](const node_api::Assignment& assignment) {
        const Configuration* configuration = std::as_const(record).Holding(assignment.address);
        if (configuration == nullptr) return false;
        const Slot& slot = configuration->At(assignment.address);
        return slot.lessee == nullptr ||
               slot.lessee->container_id != assignment.lessee.container_id;
      });
  if (unheard) fleet.hold.greet_anew.insert(key);
  effects.changed.insert(key);
  return effects;
}

Effects EndHold(Fleet& fleet, const std::set<NodeKey>& spoken, absl::Time now) {
  Effects effects;
  fleet.hold.active = false;
  for (const auto& [unit, key] : std::exchange(fleet.hold.claims, {})) {
    NodeRecord* const node = fleet.ledger.Find(key);
    if (node == nullptr) continue;
    const NodeRecord* holder = HolderOf(fleet.ledger, unit.base());
    if (holder == node) continue;
    if (holder != nullptr && spoken.contains(holder->key) && !fleet.hold.doubtful.contains(unit)) {
      effects.findings.push_back(
          {Finding::Kind::kHeldElsewhere, key, unit.base(),
           fmt::format("held by node {} ({})", holder->key.name, holder->key.vm_id)});
      NoteClaim(fleet, key, *holder, unit.base(), "was told that it has it as well");
      continue;
    }
    TakeOver(fleet, *node, unit, effects, now);
    fleet.hold.greet_anew.insert(key);  // What it assigns of that was not taken before.
  }
  // What a node that has spoken gave up since is perhaps still on its NIC: the store may be of
  // before the cloud took it off, or was asked to.
  for (const ip::Prefix& range : std::exchange(fleet.hold.doubtful, {})) {
    const NodeRecord* holder = HolderOf(fleet.ledger, range.base());
    if (holder == nullptr || !spoken.contains(holder->key)) continue;
    NodeRecord& record = *fleet.ledger.Find(holder->key);
    Configuration* configuration = record.Holding(range.base());
    if (configuration == nullptr || configuration->range != range || IsInUse(*configuration)) {
      continue;
    }
    const auto next = Next(configuration->state, AddressEvent::kAgentAgreed);
    if (!next || *next == configuration->state) continue;
    // What rests since a boot rests in the pool instead, once it is off the NIC.
    for (size_t i = 0; i < configuration->slots.size(); ++i) {
      if (configuration->slots[i].use == Use::kAvailable) continue;
      SetUse(fleet, record, *configuration,
             {configuration->AddressAt(i), Use::kAvailable, nullptr, now}, effects);
    }
    fleet.ledger.SetState(*configuration, *next, now);
    effects.changed.insert(record.key);
  }
  for (const NodeKey& key : std::exchange(fleet.hold.greet_anew, {})) {
    effects.greet_anew.emplace(key, "the recovery is over: say anew what pods use");
  }
  for (const auto& [key, record] : fleet.ledger.nodes()) {
    if (record.mode == NodeMode::kRetired) continue;
    effects.resend.insert(key);
    effects.attach.insert(key);
    effects.plan.insert(key);
  }
  return effects;
}

void Doubt(Fleet& fleet, const std::set<NodeKey>& nodes, Effects& effects, absl::Time now) {
  for (const NodeKey& key : nodes) {
    NodeRecord* const record = fleet.ledger.Find(key);
    if (record == nullptr) continue;
    for (auto& [base, configuration] : record->configurations) {
      if (configuration.state != AddressState::kAttached || IsInUse(configuration)) continue;
      fleet.ledger.SetState(configuration, AddressState::kAttaching, now);
      for (size_t i = 0; i < configuration.slots.size(); ++i) {
        SetUse(fleet, *record, configuration,
               {configuration.AddressAt(i), Use::kCooldown, nullptr, now}, effects);
      }
      effects.changed.insert(key);
    }
  }
}

}  // namespace spoke::ipam
