// What the cloud says: which addresses are on NICs, and which VMs there are.
#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "ipam-server/ledger/fleet.h"
#include "lib/base/check.h"

namespace spoke::ipam {

Effects Fleet::OnNic(const NodeKey& key, const std::vector<IpConfiguration>& on_nic,
                     absl::Time now) {
  Effects effects;
  const auto node = nodes_.find(key);
  if (node == nodes_.end()) return effects;
  NodeRecord& record = node->second;
  std::map<ip::Prefix, const IpConfiguration*> by_range;
  for (const IpConfiguration& entry : on_nic) by_range.emplace(entry.range, &entry);

  std::vector<ip::Address> detached;
  for (auto& [base, configuration] : record.configurations) {
    const auto there = by_range.find(configuration.range);
    if (there != by_range.end()) {
      off_nic_.erase(base);
      if (configuration.name != there->second->name) {
        configuration.name = there->second->name;
        effects.changed.insert(key);
      }
    } else if (configuration.state == AddressState::kAttached) {
      MissFromNic(record, configuration, effects, now);
    } else if (configuration.state == AddressState::kAttaching &&
               IsDisproved(record, configuration, effects, now)) {
      detached.push_back(base);
      continue;
    }
    const auto next =
        Next(configuration.state,
             there != by_range.end() ? AddressEvent::kCloudAttached : AddressEvent::kCloudDetached);
    if (!next || *next == configuration.state) continue;
    if (*next == AddressState::kFree) {
      detached.push_back(base);
    } else {
      Attached(record, configuration, effects, now);
    }
  }
  for (const ip::Address& base : detached) Free(record, base, effects, now);
  if (policy_.cloud_chooses) {
    TakeUnknown(record, on_nic, effects, now);
    effects.Merge(Plan(key, now));
  }
  return effects;
}

void Fleet::Attached(NodeRecord& record, Configuration& configuration, Effects& effects,
                     absl::Time now) {
  effects.attach_times.push_back(now - configuration.since);
  SetState(configuration, AddressState::kAttached, now);
  for (size_t i = 0; i < configuration.slots.size(); ++i) {
    if (configuration.slots[i].use == Use::kAvailable) configuration.slots[i].since = now;
    effects.history.push_back(
        EntryOf(HistoryEvent::kAttached, record.key, configuration.AddressAt(i), now));
  }
  effects.changed.insert(record.key);
  effects.desired.insert(record.key);
}

// One look may be at an old picture, so nothing is believed before a second one, later.
void Fleet::MissFromNic(const NodeRecord& record, const Configuration& configuration,
                        Effects& effects, absl::Time now) {
  const ip::Address& base = configuration.range.base();
  const auto [seen, first] = off_nic_.try_emplace(base, OffNic{.since = now});
  if (first || now - seen->second.since < policy_.lost_after) return;
  if (!seen->second.reported) {
    seen->second.reported = true;
    effects.findings.push_back(
        {Finding::Kind::kLost, record.key, base,
         fmt::format("{} is attached by our records, but not on the NIC any more{}",
                     configuration.range.ToString(),
                     configuration.IsAvailable() ? "; its agent is asked to give it up"
                                                 : "; a pod uses it, and is cut off")});
  }
  // Readings of many NICs that are short together are one more way to free what is in use.
  if (!configuration.IsAvailable() || seen->second.asked_until > now ||
      !MayFree(configuration.range.size(), record.key, effects, now)) {
    return;
  }
  seen->second.asked_until = now + policy_.release.denial_backoff;
  judged_.insert(configuration.range);
  effects.reclaim[record.key].push_back(configuration.range);
}

// Where the cloud chooses, an address is attaching only because an agent claims it: what two looks
// at the NIC do not find there is not so.
bool Fleet::IsDisproved(const NodeRecord& record, const Configuration& configuration,
                        Effects& effects, absl::Time now) {
  if (!policy_.cloud_chooses) return false;
  const ip::Address& base = configuration.range.base();
  const auto [seen, first] = off_nic_.try_emplace(base, OffNic{.since = now});
  if (first || now - seen->second.since < policy_.lost_after) return false;
  effects.findings.push_back(
      {Finding::Kind::kRefused, record.key, base,
       fmt::format("its agent claims {}, and its NIC has it not; it is free after the cooldown",
                   configuration.range.ToString())});
  return true;
}

// --- Addresses that the cloud chose. ---

// Entries we do not know by their address: what we wanted, what the scale set's model brought, or
// what a server knew that was restored from an older backup since.
void Fleet::TakeUnknown(NodeRecord& record, const std::vector<IpConfiguration>& on_nic,
                        Effects& effects, absl::Time now) {
  if (!record.nic_read) {
    record.nic_read = true;
    effects.changed.insert(record.key);
  }
  std::set<std::string> names;
  for (const IpConfiguration& entry : on_nic) {
    names.insert(entry.name);
    const auto known = record.configurations.find(entry.range.base());
    if (known == record.configurations.end() || known->second.range != entry.range) {
      TakeGiven(record, entry, effects, now);
    }
  }
  // What was given and is gone again is to be given anew, if it was wanted at all.
  std::vector<std::string> gone;
  for (auto& [name, wanted] : record.wanted) {
    if (!wanted.given || names.contains(name)) continue;
    wanted.given.reset();
    wanted.problem.clear();
    effects.changed.insert(record.key);
    effects.attach.insert(record.key);
    if (wanted.pool.empty() || record.mode != NodeMode::kActive) gone.push_back(name);
  }
  for (const std::string& name : gone) StopWanting(record, name);
}

void Fleet::TakeGiven(NodeRecord& record, const IpConfiguration& entry, Effects& effects,
                      absl::Time now) {
  const auto wanted = record.wanted.find(entry.name);
  std::string problem = WhyUnusable(record, entry.range, now);
  if (!problem.empty()) {
    KeepUnusable(record, entry, std::move(problem), effects, now);
    return;
  }
  const absl::Time asked = wanted == record.wanted.end() ? now : wanted->second.since;
  if (wanted == record.wanted.end() && !reservations_.all().empty()) {
    reservations_.OnDelivered(record.key.name, entry.range.family(),
                              static_cast<uint32_t>(entry.range.size()));
  }
  StopWanting(record, entry.name);
  PoolEntry* pool = PoolEntryOf(entry.range.base());
  CHECK(pool->pool.Hold(entry.range, &record), "a unit that is free can be held");
  const auto [it, inserted] = record.configurations.try_emplace(
      entry.range.base(), entry.range, pool->pool.spec().name, entry.name, asked);
  CHECK(inserted, "a unit that was free is on no NIC");
  Count(it->second, true);
  Attached(record, it->second, effects, now);
}

// Such an entry stays on the NIC: as long as it does, the cloud gives its address to nobody else.
void Fleet::KeepUnusable(NodeRecord& record, const IpConfiguration& entry, std::string problem,
                         Effects& effects, absl::Time now) {
  const auto [it, added] =
      record.wanted.try_emplace(entry.name, WantedEntry{.family = entry.range.family(),
                                                        .prefix_length = entry.range.length(),
                                                        .since = now});
  WantedEntry& wanted = it->second;
  unsettled_.insert(record.key);
  if (wanted.given == entry.range && wanted.problem == problem) return;
  wanted.given = entry.range;
  wanted.problem = std::move(problem);
  effects.changed.insert(record.key);
  const AddressPool* pool = PoolOf(entry.range.base());
  const bool cools =
      pool != nullptr && pool->StateOf(entry.range.base()) == AddressPool::State::kCooldown;
  if (cools) return;  // It is only a matter of time.
  effects.findings.push_back({Finding::Kind::kUnusable, record.key, entry.range.base(),
                              fmt::format("the cloud gave {} as {}, which {}",
                                          entry.range.ToString(), entry.name, wanted.problem)});
}

// Returns why the node may not have it; empty: it may.
std::string Fleet::WhyUnusable(const NodeRecord& record, const ip::Prefix& range, absl::Time now) {
  PoolEntry* entry = PoolEntryOf(range.base());
  if (entry == nullptr) {
    return "is in none of the pools: a pool must cover the whole subnet of its nodes' NICs";
  }
  AddressPool& pool = entry->pool;
  if (!pool.Owns(range)) {
    return fmt::format("does not fit pool {}, which is used in units of {} addresses",
                       pool.spec().name, pool.unit_size());
  }
  if (const NodeRecord* holder = pool.OwnerOf(range.base()); holder != nullptr) {
    return fmt::format("is held by node {} ({}) by our records{}", holder->key.name,
                       holder->key.vm_id, holder == &record ? " under another name" : "");
  }
  switch (pool.StateOf(range.base())) {
    case AddressPool::State::kQuarantined:
      return "is in quarantine";
    case AddressPool::State::kCooldown:
      if (pool.UsableFrom(range.base()) > now) return "is in cooldown after its last use";
      break;
    case AddressPool::State::kExcluded:
    case AddressPool::State::kFree:
    case AddressPool::State::kHeld:
      break;
  }
  return "";
}

// Looks again at what could not be used.
void Fleet::Settle(NodeRecord& record, Effects& effects, absl::Time now) {
  std::vector<IpConfiguration> given;
  for (const auto& [name, wanted] : record.wanted) {
    if (wanted.given) given.push_back({name, *wanted.given});
  }
  if (given.empty()) unsettled_.erase(record.key);
  for (const IpConfiguration& entry : given) TakeGiven(record, entry, effects, now);
}

void Fleet::StopWanting(NodeRecord& record, const std::string& name) {
  const auto it = record.wanted.find(name);
  if (it == record.wanted.end()) return;
  CountWanted(it->second, false);
  record.wanted.erase(it);
}

// Entries the cloud has put on the NIC nevertheless are taken over, and given back as others are.
void Fleet::StopWantingAll(NodeRecord& record, Effects& effects) {
  std::vector<std::string> names;
  for (const auto& [name, wanted] : record.wanted) {
    if (!wanted.given) names.push_back(name);
  }
  for (const std::string& name : names) StopWanting(record, name);
  if (!names.empty()) effects.changed.insert(record.key);
}

// --- Listings. ---

Effects Fleet::OnListedNic(const NodeKey& key, const std::vector<IpConfiguration>& on_nic) const {
  Effects effects;
  const NodeRecord* record = Find(key);
  if (record == nullptr || record->mode == NodeMode::kRetired) return effects;
  std::set<ip::Prefix> listed;
  bool differs = policy_.cloud_chooses && !record->nic_read;
  for (const IpConfiguration& entry : on_nic) {
    listed.insert(entry.range);
    const Configuration* held = record->Holding(entry.range.base());
    const auto wanted = record->wanted.find(entry.name);
    const bool known = (held != nullptr && held->range == entry.range) ||
                       (wanted != record->wanted.end() && wanted->second.given == entry.range);
    differs = differs || !known;
  }
  for (const auto& [base, configuration] : record->configurations) {
    differs = differs || (configuration.state == AddressState::kAttached &&
                          !listed.contains(configuration.range));
  }
  if (differs) effects.attach.insert(key);
  return effects;
}

void Fleet::Free(NodeRecord& record, const ip::Address& base, Effects& effects, absl::Time now) {
  const auto it = record.configurations.find(base);
  const ip::Prefix range = it->second.range;
  off_nic_.erase(range.base());
  judged_.erase(range);
  const size_t pool = PoolIndexOf(it->second.pool);
  Count(it->second, false);
  for (size_t i = 0; i < it->second.slots.size(); ++i) {
    const Slot& slot = it->second.slots[i];
    const ip::Address address = it->second.AddressAt(i);
    if (slot.lessee != nullptr) {
      effects.history.push_back(EntryOf(HistoryEvent::kReleased, record.key, address, now, &slot));
    }
    effects.history.push_back(EntryOf(HistoryEvent::kDetached, record.key, address, now));
  }
  record.configurations.erase(it);
  std::erase_if(record.released,
                [&](const auto& entry) { return entry.second + policy_.cooldown <= now; });
  record.released[range] = now;
  CHECK(pools_[pool].pool.Release(range, now + policy_.cooldown), "the pool knew it was held");
  effects.changed.insert(record.key);
  effects.desired.insert(record.key);
  if (record.configurations.empty() && record.wanted.empty()) forgettable_.insert(record.key);
}

void Fleet::FreeAll(NodeRecord& record, Effects& effects, absl::Time now) {
  while (!record.wanted.empty()) StopWanting(record, record.wanted.begin()->first);
  unsettled_.erase(record.key);
  if (const auto on = on_instance_.find(record.instance);
      on != on_instance_.end() && on->second == record.key) {
    on_instance_.erase(on);
  }
  while (!record.configurations.empty()) {
    const auto& [base, configuration] = *record.configurations.begin();
    CHECK(Next(configuration.state, AddressEvent::kNodeGone) == AddressState::kFree,
          "a node that is gone holds nothing");
    Free(record, base, effects, now);
  }
  // The record of one that held nothing but names changes too: Free() was not called for it.
  effects.changed.insert(record.key);
  forgettable_.insert(record.key);
}

// Another VM has the name, and has booted: that the old one is missing from the list has a reason.
bool Fleet::IsSucceeded(const NodeRecord& record) const {
  if (record.mode != NodeMode::kRetired) return false;
  const NodeRecord* successor = FindByName(record.key.name);
  return successor != nullptr && !successor->boot_id.empty() &&
         successor->boot_id != record.boot_id;
}

Effects Fleet::OnListing(const std::set<NodeKey>& present, const std::set<NodeKey>& connected,
                         absl::Time now) {
  Effects effects;
  if (held_) return effects;
  std::set<NodeKey> missing;
  std::vector<NodeRecord*> gone;
  std::vector<NodeRecord*> succeeded;
  uint64_t known = 0;
  uint64_t lost = 0;
  uint64_t would_free = 0;
  for (auto& [key, record] : nodes_) {
    if (record.configurations.empty() && record.wanted.empty()) continue;
    ++known;
    if (present.contains(key)) continue;
    missing.insert(key);
    const bool has_successor = IsSucceeded(record);
    lost += has_successor ? 0 : 1;
    if (!missing_.contains(key) || connected.contains(key)) continue;
    (has_successor ? succeeded : gone).push_back(&record);
    would_free += has_successor ? 0 : CountAddresses(record).total();
  }
  missing_ = std::move(missing);
  for (NodeRecord* record : succeeded) FreeGone(*record, effects, now);
  if (gone.empty()) return effects;
  const bool was_frozen = breaker_.frozen();
  const auto shrank = breaker_.SourceShrank("the cloud's list of VMs", known, known - lost, now);
  if (breaker_.frozen() != was_frozen) {
    effects.breaker = true;
    effects.findings.push_back({Finding::Kind::kFrozen, NodeKey(), ip::Address(), shrank.reason});
  }
  if (!shrank.allowed || !MayFree(would_free, NodeKey(), effects, now)) return effects;
  for (NodeRecord* record : gone) FreeGone(*record, effects, now);
  return effects;
}

void Fleet::FreeGone(NodeRecord& record, Effects& effects, absl::Time now) {
  effects.findings.push_back(
      {Finding::Kind::kGone, record.key, ip::Address(),
       fmt::format("{} addresses are free after the cooldown", CountAddresses(record).total())});
  FreeAll(record, effects, now);
  record.mode = NodeMode::kRetired;
}

}  // namespace spoke::ipam
