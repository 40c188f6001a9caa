// While the store may be older than what nodes were told: nothing is decided, and what nodes hold
// is gathered, until it is known or taken to be complete.
#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "ipam-server/ledger/fleet.h"
#include "lib/base/check.h"

namespace spoke::ipam {

absl::Status Fleet::CheckNotHeld() const {
  if (!held_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "nothing is assigned or taken back while a recovery is under way; see: spokectl recovery "
      "show");
}

std::vector<NodeKey> Fleet::NodesWithAddresses() const {
  std::vector<NodeKey> nodes;
  for (const auto& [key, record] : nodes_) {
    if (record.mode == NodeMode::kRetired) continue;
    if (!record.configurations.empty() || !record.wanted.empty()) nodes.push_back(key);
  }
  return nodes;
}

Effects Fleet::OnInventory(const NodeKey& key, const node_api::Inventory& inventory,
                           absl::Time now) {
  Effects effects;
  const auto node = nodes_.find(key);
  if (!held_ || node == nodes_.end()) return effects;
  NodeRecord& record = node->second;
  std::set<ip::Address> holds(inventory.held.begin(), inventory.held.end());
  for (const auto& [base, configuration] : record.configurations) {
    const ip::Prefix range = configuration.range;
    const auto in_it = holds.lower_bound(range.base());
    const bool there = in_it != holds.end() && range.Contains(*in_it);
    if (there) {
      doubtful_.erase(range);
    } else {
      doubtful_.insert(range);
    }
  }
  std::erase_if(claims_, [&](const auto& claim) { return claim.second == key; });
  for (const ip::Address& address : holds) {
    PoolEntry* entry = PoolEntryOf(address);
    if (entry == nullptr) continue;  // It is said when assigned: see Adopt().
    const ip::Prefix unit = *entry->pool.UnitOf(address);
    const NodeRecord* holder = entry->pool.OwnerOf(address);
    if (holder == &record) {
      Configuration& configuration = record.configurations.at(unit.base());
      if (configuration.state == AddressState::kAttaching) {  // It was taken over from its hello.
        SetState(configuration, AddressState::kAttached, now);
      }
      continue;
    }
    if (holder != nullptr && !doubtful_.contains(unit)) {
      claims_.try_emplace(unit, key);  // Its holder has yet to speak.
      continue;
    }
    TakeOver(record, unit, effects, now);
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
  if (unheard) greet_anew_.insert(key);
  effects.changed.insert(key);
  return effects;
}

// The node has been told of the unit by a store that knew more, whoever has it here.
void Fleet::TakeOver(NodeRecord& record, const ip::Prefix& unit, Effects& effects, absl::Time now) {
  PoolEntry* entry = PoolEntryOf(unit.base());
  std::string detail = "was free here; the node was told of it, and keeps it";
  if (const std::string why = WhyNotAdopted(record, *entry); !why.empty()) {
    effects.findings.push_back({Finding::Kind::kRefused, record.key, unit.base(), why});
    return;
  }
  if (const NodeRecord* holder = entry->pool.OwnerOf(unit.base()); holder != nullptr) {
    NodeRecord& former = nodes_.at(holder->key);
    detail = fmt::format("was on node {} here; this node was told of it since, and keeps it",
                         former.key.name);
    const auto it = former.configurations.find(unit.base());
    Count(it->second, false);
    off_nic_.erase(unit.base());
    former.configurations.erase(it);
    CHECK(entry->pool.Release(unit, now + policy_.cooldown), "the pool knew it was held");
    effects.changed.insert(former.key);
    // A store that writes in stages takes it from the former node first.
    effects.history.push_back(EntryOf(HistoryEvent::kDetached, former.key, unit.base(), now));
  }
  doubtful_.erase(unit);
  CHECK(entry->pool.Hold(unit, &record), "a unit without a holder can be held");
  const auto [it, inserted] = record.configurations.try_emplace(
      unit.base(), unit, entry->pool.spec().name, NextName(record), now);
  CHECK(inserted, "a unit that was free is on no NIC");
  // The node would not hold it, had it not been attached: so it can go on.
  it->second.state = AddressState::kAttached;
  Count(it->second, true);
  effects.changed.insert(record.key);
  effects.history.push_back(EntryOf(HistoryEvent::kAdopted, record.key, unit.base(), now));
  effects.findings.push_back({Finding::Kind::kAdopted, record.key, unit.base(), std::move(detail)});
}

Effects Fleet::EndRecovery(const std::set<NodeKey>& spoken, absl::Time now) {
  Effects effects;
  held_ = false;
  for (const auto& [unit, key] : std::exchange(claims_, {})) {
    const auto node = nodes_.find(key);
    if (node == nodes_.end()) continue;
    const NodeRecord* holder = HolderOf(unit.base());
    if (holder == &node->second) continue;
    if (holder != nullptr && spoken.contains(holder->key) && !doubtful_.contains(unit)) {
      effects.findings.push_back(
          {Finding::Kind::kHeldElsewhere, key, unit.base(),
           fmt::format("held by node {} ({})", holder->key.name, holder->key.vm_id)});
      NoteClaim(key, *holder, unit.base(), "was told that it has it as well");
      continue;
    }
    TakeOver(node->second, unit, effects, now);
    greet_anew_.insert(key);  // What it assigns of that was not taken before.
  }
  // What was given back since by a node that has spoken.
  for (const ip::Prefix& range : std::exchange(doubtful_, {})) {
    const NodeRecord* holder = HolderOf(range.base());
    if (holder == nullptr || !spoken.contains(holder->key)) continue;
    const Configuration* configuration = holder->Holding(range.base());
    if (configuration == nullptr || configuration->range != range ||
        !configuration->IsAvailable()) {
      continue;
    }
    Free(nodes_.at(holder->key), range.base(), effects, now);
  }
  for (const NodeKey& key : std::exchange(greet_anew_, {})) {
    effects.greet_anew.emplace(key, "the recovery is over: say anew what pods use");
  }
  for (const auto& [key, record] : nodes_) {
    if (record.mode == NodeMode::kRetired) continue;
    effects.resend.insert(key);
    effects.attach.insert(key);
    effects.plan.insert(key);
  }
  return effects;
}

void Fleet::HoldClaims(const node_api::Hello& hello, Effects& effects, absl::Time now) {
  std::set<ip::Address>& claimed = refused_claims_[hello.node.node_name];
  std::erase_if(claimed,
                [&](const ip::Address& address) { return !quarantine_.contains(address); });
  const absl::Time until = now + policy_.conflict.quarantine;
  for (const node_api::Assignment& assignment : hello.in_use) {
    const ip::Address& address = assignment.address;
    // Nobody remembers after a restart whose claims they were.
    const auto known = quarantine_.find(address);
    const bool ends = known != quarantine_.end() && known->second.until;
    if (ends && claimed.size() < policy_.nic_configurations) claimed.insert(address);
    if (claimed.contains(address)) {
      Prolong(address, until, effects);
      continue;
    }
    // A node claims no more than a NIC takes in all, or it could claim the pool bit by bit.
    const AddressPool* pool = PoolOf(address);
    if (claimed.size() >= policy_.nic_configurations || pool == nullptr ||
        pool->StateOf(address) != AddressPool::State::kFree) {
      continue;
    }
    const std::string reason =
        fmt::format("node {} says that a pod uses it, and was refused", hello.node.node_name);
    auto quarantined =
        SetQuarantine(address, Quarantine{.reason = reason, .since = now, .until = until}, now);
    if (!quarantined.ok()) continue;
    effects.Merge(*std::move(quarantined));
    claimed.insert(address);
  }
  if (claimed.empty()) refused_claims_.erase(hello.node.node_name);
}

}  // namespace spoke::ipam
