// What agents say.
#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "fmt/core.h"
#include "ipam-server/ledger/fleet.h"
#include "lib/base/check.h"

namespace spoke::ipam {

void Fleet::SetUse(NodeRecord& record, Configuration& configuration, const ip::Address& address,
                   const UseChange& change, Effects& effects) {
  Slot& slot = configuration.At(address);
  const Slot before = slot;
  Count(configuration, false);
  slot.use = change.use;
  slot.since = change.at;
  slot.lessee = nullptr;
  if (change.assignment != nullptr) {
    slot.generation = change.assignment->generation;
    slot.lessee = before.lessee != nullptr && *before.lessee == change.assignment->lessee
                      ? before.lessee
                      : std::make_shared<const node_api::Lessee>(change.assignment->lessee);
  }
  Count(configuration, true);
  if (slot.lessee == before.lessee) return;
  if (before.lessee != nullptr) {
    effects.history.push_back(
        EntryOf(HistoryEvent::kReleased, record.key, address, change.at, &before));
  }
  if (slot.lessee != nullptr) {
    effects.history.push_back(EntryOf(HistoryEvent::kInUse, record.key, address, change.at, &slot));
  }
}

Effects Fleet::OnHello(const node_api::Hello& hello, absl::Time now, bool instance_proved) {
  const NodeKey key = KeyOf(hello);
  Effects effects;
  KeepRecordOf(hello, effects);
  const auto [it, inserted] = nodes_.try_emplace(key);
  NodeRecord& record = it->second;
  record.key = key;
  ++record.session_epoch;
  missing_.erase(key);
  forgettable_.erase(key);
  demands_.erase(key);  // It is of the session before.

  effects.changed.insert(key);
  if (record.mode == NodeMode::kRetired) record.mode = NodeMode::kActive;
  RetireOthers(key, effects);
  if (record.nic_mac != hello.nic.mac) {
    // The addresses have to follow to the NIC that the node has now.
    record.nic_mac = hello.nic.mac;
    if (!record.configurations.empty() || !record.wanted.empty()) effects.attach.insert(key);
  }
  TakePlace(record, hello);
  if (instance_proved) proved_.insert(key);
  TakeInstance(record, hello, effects);
  EndAssignmentsOf(record, hello, effects, now);
  EndClaimsOf(hello.node.node_name);
  record.boot_id = hello.node.boot_id;
  for (const node_api::Assignment& assignment : hello.in_use)
    TakeAssignment(record, assignment, effects);
  for (const ip::Address& address : hello.cooldown) {
    Configuration* configuration = record.Holding(address);
    if (configuration != nullptr && configuration->At(address).use == Use::kAvailable) {
      SetUse(record, *configuration, address, {Use::kCooldown, nullptr, now}, effects);
    }
  }
  if (inserted) ClaimReserved(record, effects);
  if (policy_.cloud_chooses && !record.nic_read) effects.attach.insert(key);
  // A draining node that was away is asked at once for what it can give back.
  effects.Merge(record.mode == NodeMode::kDraining ? Review(key, 0, now) : Plan(key, now));
  return effects;
}

// What decides which pools serve the node.
void Fleet::TakePlace(NodeRecord& record, const node_api::Hello& hello) {
  const std::vector<PoolGroup>* before = &GroupsFor(record);
  record.labels = hello.node.labels;
  record.vnet = hello.node.vnet;
  if (!hello.node.subnets.empty()) record.subnets = hello.node.subnets;
  if (&GroupsFor(record) != before) {
    reservations_.OnPoolsChanged(Capacity({record.key.name}, Holdings::kLeftOut));
  }
}

// Ends the assignments that the agent does not name. After a reboot it cannot remember what to
// keep from reuse, so the old assignments are in cooldown from now on.
void Fleet::EndAssignmentsOf(NodeRecord& record, const node_api::Hello& hello, Effects& effects,
                             absl::Time now) {
  const bool rebooted = record.boot_id != hello.node.boot_id;
  absl::flat_hash_set<std::string> still_in_use;
  for (const node_api::Assignment& assignment : hello.in_use)
    still_in_use.insert(assignment.address.ToBytes());
  for (auto& [base, configuration] : record.configurations) {
    for (size_t i = 0; i < configuration.slots.size(); ++i) {
      Slot& slot = configuration.slots[i];
      const ip::Address address = configuration.AddressAt(i);
      if (still_in_use.contains(address.ToBytes())) continue;
      if (rebooted) slot.generation = 0;  // A new journal counts from the beginning.
      if (slot.use == Use::kInUse) {
        SetUse(record, configuration, address,
               {rebooted ? Use::kCooldown : Use::kAvailable, nullptr, now}, effects);
      } else if (slot.use == Use::kCooldown && !rebooted) {
        SetUse(record, configuration, address, {Use::kAvailable, nullptr, now}, effects);
      }
    }
  }
}

void Fleet::TakeAssignment(NodeRecord& record, const node_api::Assignment& assignment,
                           Effects& effects) {
  Configuration* configuration = record.Holding(assignment.address);
  if (configuration == nullptr) {
    if (!Adopt(record, assignment, effects)) return;
    configuration = record.Holding(assignment.address);
  }
  if (assignment.generation < configuration->At(assignment.address).generation) return;
  RecordAssignment(record, *configuration, assignment, effects);
}

// One that was being given up stays: its agent has a pod on it all the same.
void Fleet::RecordAssignment(NodeRecord& record, Configuration& configuration,
                             const node_api::Assignment& assignment, Effects& effects) {
  const AddressState next = Next(configuration.state, AddressEvent::kAgentAssigns).value();
  if (next != configuration.state) {
    SetState(configuration, next, assignment.since);
    effects.attach.insert(record.key);
  }
  SetUse(record, configuration, assignment.address, {Use::kInUse, &assignment, assignment.since},
         effects);
}

bool Fleet::Adopt(NodeRecord& record, const node_api::Assignment& assignment, Effects& effects) {
  const ip::Address& address = assignment.address;
  const auto report = [&](Finding::Kind kind, std::string detail) {
    effects.findings.push_back({kind, record.key, address, std::move(detail)});
  };
  if (const NodeRecord* holder = HolderOf(address); holder != nullptr) {
    report(Finding::Kind::kHeldElsewhere,
           fmt::format("held by node {} ({})", holder->key.name, holder->key.vm_id));
    NoteClaim(record.key, *holder, address, "has a pod that uses it");
    return false;
  }
  PoolEntry* entry = PoolEntryOf(address);
  if (entry == nullptr) {
    report(Finding::Kind::kForeign, "in none of the configured pools");
    return false;
  }
  if (std::string why = WhyNotAdopted(record, *entry); !why.empty()) {
    report(Finding::Kind::kRefused, std::move(why));
    return false;
  }
  const ip::Prefix unit = *entry->pool.UnitOf(address);
  CHECK(entry->pool.Hold(unit, &record), "a unit without a holder can be held");
  // It counts as attaching until the cloud confirms; the pod is not disturbed.
  Assign(record, static_cast<size_t>(entry - pools_.data()), unit, effects, assignment.since);
  effects.history.push_back(EntryOf(HistoryEvent::kAdopted, record.key, address, assignment.since));
  report(Finding::Kind::kAdopted, "was free here; the pod keeps it");
  return true;
}

// Returns why not; empty: what its agent claims can be on the NIC of the node.
std::string Fleet::WhyNotAdopted(const NodeRecord& record, const PoolEntry& entry) const {
  if (record.configurations.size() + record.wanted.size() >= policy_.nic_configurations) {
    return fmt::format("its NIC takes {} IP configurations, and has them",
                       policy_.nic_configurations);
  }
  const auto index = static_cast<size_t>(&entry - pools_.data());
  for (const PoolGroup& group : GroupsFor(record)) {
    if (std::find(group.pools.begin(), group.pools.end(), index) != group.pools.end()) return "";
  }
  return fmt::format("pool {} does not serve this node", entry.pool.spec().name);
}

Effects Fleet::OnReport(const NodeKey& key, const node_api::AssignmentReport& report,
                        absl::Time now) {
  Effects effects;
  const auto node = nodes_.find(key);
  if (node == nodes_.end()) return effects;
  NodeRecord& record = node->second;
  std::vector<const node_api::Assignment*> taken;
  for (const node_api::Assignment& assignment : report.in_use) {
    Configuration* configuration = record.Holding(assignment.address);
    if (configuration == nullptr) {
      const NodeRecord* holder = HolderOf(assignment.address);
      if (holder == nullptr ||
          !NoteClaim(key, *holder, assignment.address, "has a pod that uses it")) {
        continue;
      }
      effects.findings.push_back(
          {Finding::Kind::kHeldElsewhere, key, assignment.address,
           fmt::format("held by node {} ({})", holder->key.name, holder->key.vm_id)});
      continue;
    }
    if (assignment.generation <= configuration->At(assignment.address).generation) continue;
    RecordAssignment(record, *configuration, assignment, effects);
    taken.push_back(&assignment);
  }
  if (!taken.empty()) ServeWaiting(key, taken, now);
  // A release counts too: a node with addresses in cooldown may need more than before.
  bool changed = !taken.empty();
  for (const node_api::Release& release : report.released) {
    Configuration* configuration = record.Holding(release.address);
    if (configuration == nullptr) {
      EndClaim(key, release.address);
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
    SetUse(record, *configuration, release.address, {Use::kCooldown, nullptr, now}, effects);
    changed = true;
  }
  for (const ip::Address& address : report.cooled) {
    Configuration* configuration = record.Holding(address);
    if (configuration == nullptr || configuration->At(address).use != Use::kCooldown) continue;
    SetUse(record, *configuration, address, {Use::kAvailable, nullptr, now}, effects);
    changed = true;
  }
  if (!changed) return effects;
  effects.changed.insert(key);
  effects.Merge(Plan(key, now));
  return effects;
}

Effects Fleet::OnReclaimAnswer(const NodeKey& key, const node_api::ReclaimAnswer& answer,
                               absl::Time now) {
  Effects effects;
  const auto node = nodes_.find(key);
  if (node == nodes_.end()) return effects;
  NodeRecord& record = node->second;
  const auto find = [&](const ip::Prefix& range) -> Configuration* {
    const auto it = record.configurations.find(range.base());
    return it == record.configurations.end() || it->second.range != range ? nullptr : &it->second;
  };
  for (const ip::Prefix& range : answer.agreed) {
    Configuration* configuration = find(range);
    // What it assigns according to its own reports it cannot have given up.
    if (configuration == nullptr || !configuration->IsAvailable()) continue;
    const auto next = Next(configuration->state, AddressEvent::kAgentAgreed);
    if (!next || *next == configuration->state) continue;
    SetState(*configuration, *next, now);
    judged_.erase(range);
    effects.changed.insert(key);
    effects.attach.insert(key);
    effects.desired.insert(key);
  }
  for (const ip::Prefix& range : answer.denied) {
    Configuration* configuration = find(range);
    if (configuration == nullptr) continue;
    configuration->denied_until = now + policy_.release.denial_backoff;
    effects.changed.insert(key);
    if (judged_.erase(range) > 0) {
      breaker_.GiveBack(range.size());
      effects.breaker = true;
    }
  }
  return effects;
}

}  // namespace spoke::ipam
