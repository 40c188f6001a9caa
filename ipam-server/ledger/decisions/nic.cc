#include "ipam-server/ledger/decisions/nic.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "fmt/core.h"
#include "ipam-server/ledger/decisions/holdings.h"
#include "ipam-server/ledger/decisions/plan.h"
#include "ipam-server/ledger/targets.h"

namespace spoke::ipam {
namespace {

constexpr size_t kSettledAtOnce = 128;  // Nodes.
constexpr std::string_view kNotAskedFor =
    "was not asked for by this store, and is used once it has been seen for a cooldown";
constexpr std::string_view kLookedAtAgain =
    "was of no use when it was seen, and is looked at again";

void Attached(Fleet& fleet, NodeRecord& record, Configuration& configuration, Effects& effects,
              absl::Time now) {
  effects.attach_times.push_back(now - configuration.since);
  fleet.ledger.SetState(configuration, AddressState::kAttached, now);
  for (size_t i = 0; i < configuration.slots.size(); ++i) {
    if (configuration.slots[i].use == Use::kAvailable) configuration.slots[i].since = now;
    effects.history.push_back(
        EntryOf(HistoryEvent::kAttached, record.key, configuration.AddressAt(i), now));
  }
  effects.changed.insert(record.key);
  effects.desired.insert(record.key);
}

// Of what is withheld from it an agent does not say that the cooldown is over.
void EndCooldowns(Fleet& fleet, NodeRecord& record, Configuration& configuration, Effects& effects,
                  absl::Time now) {
  for (size_t i = 0; i < configuration.slots.size(); ++i) {
    const Slot& slot = configuration.slots[i];
    if (slot.use != Use::kCooldown || now - slot.since < fleet.policy.cooldown) continue;
    SetUse(fleet, record, configuration,
           {configuration.AddressAt(i), Use::kAvailable, nullptr, now}, effects);
  }
}

// One look may be at an old picture, so nothing is believed before a second one, later.
void MissFromNic(Fleet& fleet, NodeRecord& record, Configuration& configuration, Effects& effects,
                 absl::Time now) {
  const ip::Address& base = configuration.range.base();
  const auto [seen, first] = fleet.off_nic.try_emplace(base, OffNic{.since = now});
  if (first || now - seen->second.since < fleet.policy.lost_after) return;
  if (!seen->second.reported) {
    seen->second.reported = true;
    effects.desired.insert(record.key);  // It is withheld from pods from now on.
    effects.findings.push_back(
        {Finding::Kind::kLost, record.key, base,
         fmt::format("{} is attached by our records, but not on the NIC any more{}",
                     configuration.range.ToString(),
                     configuration.IsAvailable() ? "; no pod gets it from now on"
                                                 : "; a pod uses it, and is cut off")});
  }
  // Readings of many NICs that are short together are one more way to free what is in use.
  EndCooldowns(fleet, record, configuration, effects, now);
  if (!configuration.IsAvailable() || seen->second.asked_until > now ||
      !MayFree(fleet, configuration.range.size(), record.key, effects, now)) {
    return;
  }
  seen->second.asked_until = now + fleet.policy.release.denial_backoff;
  fleet.judged.insert_or_assign(configuration.range, now);
  effects.reclaim[record.key].push_back(configuration.range);
}

// Where the cloud chooses, an address is attaching only because an agent claims it: what two looks
// at the NIC do not find there is not so.
bool IsDisproved(Fleet& fleet, const NodeRecord& record, const Configuration& configuration,
                 Effects& effects, absl::Time now) {
  if (!fleet.policy.cloud_chooses) return false;
  const ip::Address& base = configuration.range.base();
  const auto [seen, first] = fleet.off_nic.try_emplace(base, OffNic{.since = now});
  if (first || now - seen->second.since < fleet.policy.lost_after) return false;
  effects.findings.push_back(
      {Finding::Kind::kRefused, record.key, base,
       fmt::format("its agent claims {}, and its NIC has it not; it is free after the cooldown",
                   configuration.range.ToString())});
  return true;
}

// --- Addresses that the cloud chose. ---

// Returns why the node may not have it; empty: it may.
std::string WhyUnusable(const Fleet& fleet, const NodeRecord& record, const ip::Prefix& range,
                        absl::Time now) {
  const PoolEntry* entry = fleet.ledger.pools().Offering(range.base());
  if (entry == nullptr) {
    return "is in none of the pools: a pool must cover the whole subnet of its nodes' NICs";
  }
  const AddressPool& pool = entry->pool;
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

// Returns why it can be used by no node, whoever has what, and only takes a place on the NIC;
// empty: it can. Whoever writes machines in a version of Azure's API that knows of no blocks makes
// single addresses of them.
std::string WhyMisfit(const Fleet& fleet, const NodeRecord& record, const ip::Prefix& range) {
  const PoolEntry* const entry = fleet.ledger.pools().Covering(range.base());
  if (entry == nullptr || entry->pool.unit_size() == range.size()) return "";
  // Nothing is taken off a node that is frozen. Another machine has the name of one that is
  // retired, which may go on all the same.
  const bool stays = record.mode == NodeMode::kFrozen || record.mode == NodeMode::kRetired ||
                     fleet.hold.active || MayBeClaimed(fleet, record.key, range);
  if (stays) return "";
  return fmt::format("does not fit pool {}, which is used in units of {} addresses, and goes",
                     entry->pool.spec().name, entry->pool.unit_size());
}

// Such an entry stays on the NIC: as long as it does, the cloud gives its address to nobody else.
// `unusable`: as it is, if it was not wanted.
void KeepUnusable(Fleet& fleet, NodeRecord& record, const std::string& name,
                  const WantedEntry& unusable, Effects& effects) {
  fleet.unsettled.insert(record.key);
  if (const auto wanted = record.wanted.find(name); wanted == record.wanted.end()) {
    fleet.ledger.SetWanted(record, name, unusable);
  } else {
    WantedEntry& entry = wanted->second;
    if (entry.given == unusable.given && entry.problem == unusable.problem &&
        entry.given_back == unusable.given_back) {
      return;
    }
    entry.given = unusable.given;
    entry.problem = unusable.problem;
    entry.given_back = unusable.given_back;
  }
  effects.changed.insert(record.key);
  if (unusable.given_back) effects.attach.insert(record.key);
  const ip::Address& base = unusable.given->base();
  const PoolEntry* entry = fleet.ledger.pools().Covering(base);
  const bool cools =
      unusable.problem == kNotAskedFor ||
      (entry != nullptr && entry->pool.StateOf(base) == AddressPool::State::kCooldown);
  if (cools) return;  // It is only a matter of time.
  effects.findings.push_back({Finding::Kind::kUnusable, record.key, base,
                              fmt::format("the cloud gave {} as {}, which {}",
                                          unusable.given->ToString(), name, unusable.problem)});
}

// What was of no use when it was seen on the NIC may have been an old picture of what has left it.
void LookAgain(NodeRecord& record, WantedEntry& wanted, Effects& effects) {
  if (wanted.problem == kLookedAtAgain) return;
  wanted.problem = kLookedAtAgain;
  effects.changed.insert(record.key);
  effects.attach.insert(record.key);
}

// An entry on the NIC: seen now, or when it was read before.
struct Seen {
  const IpConfiguration& entry;
  bool is_now = true;
};

void TakeGiven(Fleet& fleet, NodeRecord& record, const Seen& seen, Effects& effects,
               absl::Time now) {
  const IpConfiguration& entry = seen.entry;
  const auto wanted = record.wanted.find(entry.name);
  if (const Configuration* held = std::as_const(record).Holding(entry.range.base());
      held != nullptr && held->range == entry.range && held->name == entry.name) {
    // It was of no use when it was given, and has been taken over from what its agent says since.
    // Nobody may want the name less: the address would leave the NIC with it.
    if (wanted != record.wanted.end()) fleet.ledger.SetWanted(record, entry.name, std::nullopt);
    effects.changed.insert(record.key);
    return;
  }
  std::string problem = WhyMisfit(fleet, record, entry.range);
  const bool known = wanted != record.wanted.end() && wanted->second.given == entry.range;
  // A call that takes it off the NIC may be under way, whatever has ended since.
  const bool given_back = !problem.empty() || (known && wanted->second.given_back);
  if (problem.empty()) {
    problem = given_back ? std::string(kGivenBack) : WhyUnusable(fleet, record, entry.range, now);
  }
  // What this store did not ask for one that is gone may have, and pods may have had it until the
  // machine booted a moment ago. On a NIC that is known, others have put it, and a call that takes
  // it off again may be under way.
  const bool may_have_had_pods = fleet.was_behind;
  const bool may_be_leaving = record.nic_read;
  const bool asked_for = wanted != record.wanted.end() && !wanted->second.pool.empty();
  const absl::Time asked = wanted == record.wanted.end() ? now : wanted->second.since;
  if (problem.empty() && !asked_for && (may_have_had_pods || may_be_leaving) &&
      now < asked + fleet.policy.cooldown) {
    problem = kNotAskedFor;
  }
  if (!problem.empty()) {
    KeepUnusable(fleet, record, entry.name,
                 {.family = entry.range.family(),
                  .prefix_length = entry.range.length(),
                  .since = now,
                  .given = entry.range,
                  .problem = std::move(problem),
                  .given_back = given_back},
                 effects);
    return;
  }
  if (!seen.is_now) return LookAgain(record, wanted->second, effects);
  if (wanted == record.wanted.end() && !fleet.reservations.all().empty()) {
    fleet.reservations.OnDelivered(record.key.name, entry.range.family(),
                                   static_cast<uint32_t>(entry.range.size()));
  }
  fleet.ledger.SetWanted(record, entry.name, std::nullopt);
  Configuration& configuration =
      fleet.ledger.Hold(record, entry.range, AddressState::kAttaching, asked);
  configuration.name = entry.name;
  Attached(fleet, record, configuration, effects, now);
}

// Entries we do not know by their address: what we wanted, what the scale set's model brought, or
// what a server knew that was restored from an older backup since.
void TakeUnknown(Fleet& fleet, NodeRecord& record, const std::vector<IpConfiguration>& on_nic,
                 Effects& effects, absl::Time now) {
  std::set<std::string> names;
  for (const IpConfiguration& entry : on_nic) {
    names.insert(entry.name);
    const auto known = record.configurations.find(entry.range.base());
    if (known == record.configurations.end() || known->second.range != entry.range) {
      TakeGiven(fleet, record, {entry}, effects, now);
    }
  }
  if (!record.nic_read) {
    record.nic_read = true;
    effects.changed.insert(record.key);
  }
  // What was given and is gone again is to be given anew, if it was wanted at all.
  std::vector<std::string> gone;
  for (auto& [name, wanted] : record.wanted) {
    if (!wanted.given || names.contains(name)) continue;
    wanted.given.reset();
    wanted.problem.clear();
    wanted.given_back = false;
    effects.changed.insert(record.key);
    effects.attach.insert(record.key);
    if (wanted.pool.empty() || record.mode != NodeMode::kActive) gone.push_back(name);
  }
  for (const std::string& name : gone) fleet.ledger.SetWanted(record, name, std::nullopt);
}

// Looks again at what could not be used, or has the cloud look where it may be by now.
void Settle(Fleet& fleet, NodeRecord& record, Effects& effects, absl::Time now) {
  std::vector<IpConfiguration> given;
  for (const auto& [name, wanted] : record.wanted) {
    if (wanted.given) given.push_back({name, *wanted.given});
  }
  if (given.empty()) fleet.unsettled.erase(record.key);
  for (const IpConfiguration& entry : given) {
    TakeGiven(fleet, record, {.entry = entry, .is_now = false}, effects, now);
  }
}

}  // namespace

Effects OnNic(Fleet& fleet, const NodeKey& key, const std::vector<IpConfiguration>& on_nic,
              absl::Time now) {
  Effects effects;
  NodeRecord* const node = fleet.ledger.Find(key);
  if (node == nullptr) return effects;
  NodeRecord& record = *node;
  std::map<ip::Prefix, const IpConfiguration*> by_range;
  for (const IpConfiguration& entry : on_nic) by_range.emplace(entry.range, &entry);

  std::vector<ip::Address> detached;
  for (auto& [base, configuration] : record.configurations) {
    const auto there = by_range.find(configuration.range);
    if (there != by_range.end()) {
      if (const auto seen = fleet.off_nic.extract(base); !seen.empty() && seen.mapped().reported) {
        effects.desired.insert(key);
      }
      if (configuration.name != there->second->name) {
        configuration.name = there->second->name;
        effects.changed.insert(key);
      }
      if (record.wanted.contains(configuration.name)) {
        TakeGiven(fleet, record, {*there->second}, effects, now);
      }
    } else if (configuration.state == AddressState::kAttached) {
      MissFromNic(fleet, record, configuration, effects, now);
    } else if (configuration.state == AddressState::kAttaching &&
               IsDisproved(fleet, record, configuration, effects, now)) {
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
      Attached(fleet, record, configuration, effects, now);
    }
  }
  for (const ip::Address& base : detached) Free(fleet, record, base, effects, now);
  if (fleet.policy.cloud_chooses) {
    TakeUnknown(fleet, record, on_nic, effects, now);
    effects.Merge(PlanNode(fleet, key, now));
  }
  return effects;
}

Effects OnListedNic(const Fleet& fleet, const NodeKey& key,
                    const std::vector<IpConfiguration>& on_nic) {
  Effects effects;
  const NodeRecord* record = fleet.ledger.Find(key);
  if (record == nullptr || record->mode == NodeMode::kRetired) return effects;
  std::set<ip::Prefix> listed;
  bool differs = fleet.policy.cloud_chooses && !record->nic_read;
  for (const IpConfiguration& entry : on_nic) {
    listed.insert(entry.range);
    const Configuration* held = record->Holding(entry.range.base());
    const auto wanted = record->wanted.find(entry.name);
    // After a restore it may have another name here than the newer store had given it.
    const bool is_held = held != nullptr && held->range == entry.range && held->name == entry.name;
    const bool known =
        is_held || (wanted != record->wanted.end() && wanted->second.given == entry.range);
    differs = differs || !known;
  }
  for (const auto& [base, configuration] : record->configurations) {
    differs = differs || (configuration.state == AddressState::kAttached &&
                          !listed.contains(configuration.range));
  }
  if (differs) effects.attach.insert(key);
  return effects;
}

void SettleSome(Fleet& fleet, Effects& effects, absl::Time now) {
  std::vector<NodeKey> some;
  for (size_t i = 0; i < std::min(kSettledAtOnce, fleet.unsettled.size()); ++i) {
    auto next = fleet.unsettled.upper_bound(some.empty() ? fleet.settled : some.back());
    if (next == fleet.unsettled.end()) next = fleet.unsettled.begin();
    some.push_back(*next);
  }
  for (const NodeKey& key : some) {
    fleet.settled = key;
    if (NodeRecord* const node = fleet.ledger.Find(key); node != nullptr) {
      Settle(fleet, *node, effects, now);
    }
  }
}

}  // namespace spoke::ipam
