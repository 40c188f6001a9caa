#include "ipam-server/ledger/decisions/holdings.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "fmt/core.h"
#include "ipam-server/ledger/decisions/conflict.h"

namespace spoke::ipam {
namespace {

// A pod has had the address of a pool since then, and nobody else has it. It counts as attaching
// until the cloud confirms; the pod is not disturbed.
void AdoptFree(Fleet& fleet, NodeRecord& record, const ip::Address& address, absl::Time since,
               Effects& effects) {
  const ip::Prefix unit = *fleet.ledger.pools().Offering(address)->pool.UnitOf(address);
  Configuration& configuration = HoldClaimed(fleet, record, unit, AddressState::kAttaching, since);
  BeginAttaching(fleet, record, configuration, effects);
  effects.history.push_back(EntryOf(HistoryEvent::kAdopted, record.key, address, since));
  effects.findings.push_back(
      {Finding::Kind::kAdopted, record.key, address, "was free here; the pod keeps it"});
}

bool Adopt(Fleet& fleet, NodeRecord& record, const node_api::Assignment& assignment,
           Effects& effects) {
  const ip::Address& address = assignment.address;
  const auto report = [&](Finding::Kind kind, std::string detail) {
    effects.findings.push_back({kind, record.key, address, std::move(detail)});
  };
  if (const NodeRecord* holder = HolderOf(fleet.ledger, address); holder != nullptr) {
    report(Finding::Kind::kHeldElsewhere,
           fmt::format("held by node {} ({})", holder->key.name, holder->key.vm_id));
    NoteClaim(fleet, record.key, *holder, address, "has a pod that uses it");
    return false;
  }
  const PoolEntry* entry = fleet.ledger.pools().Offering(address);
  if (entry == nullptr) {
    report(Finding::Kind::kForeign, "in none of the configured pools");
    return false;
  }
  if (std::string why = WhyNotAdopted(fleet, record, *entry); !why.empty()) {
    report(Finding::Kind::kRefused, std::move(why));
    return false;
  }
  AdoptFree(fleet, record, address, assignment.since, effects);
  return true;
}

// Returns 0 for a single address.
int BlockLength(const ip::Prefix& range) {
  const auto length = static_cast<int>(range.length());
  return length == range.base().bits() ? 0 : length;
}

}  // namespace

std::string NextName(const Fleet& fleet, NodeRecord& record, int block_length) {
  // A store that was restored finds names on the NIC that it gives for the first time.
  const auto is_there = [&record](const std::string& name) {
    return record.wanted.contains(name) ||
           std::any_of(record.configurations.begin(), record.configurations.end(),
                       [&name](const auto& entry) { return entry.second.name == name; });
  };
  const std::string kind = block_length == 0 ? "" : fmt::format("{}-", block_length);
  std::string name;
  do {
    name = fmt::format("{}{}{}", fleet.policy.name_prefix, kind, record.next_configuration++);
  } while (is_there(name));
  return name;
}

// What is unusable may be given back at any time, a drain is enough, and by its name the address
// would leave the NIC with its pod.
Configuration& HoldClaimed(Fleet& fleet, NodeRecord& record, const ip::Prefix& unit,
                           AddressState state, absl::Time since) {
  const auto given = std::find_if(record.wanted.begin(), record.wanted.end(),
                                  [&](const auto& entry) { return entry.second.given == unit; });
  std::string name;
  if (given != record.wanted.end()) {
    name = given->first;
    fleet.ledger.SetWanted(record, name, std::nullopt);
  } else {
    name = NextName(fleet, record, BlockLength(unit));
  }
  Configuration& configuration = fleet.ledger.Hold(record, unit, state, since);
  configuration.name = std::move(name);
  return configuration;
}

void BeginAttaching(Fleet& fleet, NodeRecord& record, Configuration& configuration,
                    Effects& effects) {
  if (configuration.name.empty()) {
    configuration.name = NextName(fleet, record, BlockLength(configuration.range));
  }
  effects.changed.insert(record.key);
  effects.attach.insert(record.key);
  if (!fleet.reservations.all().empty()) {
    // The change is not stored: what is still missing is worked out anew at start.
    fleet.reservations.OnDelivered(record.key.name, configuration.range.family(),
                                   static_cast<uint32_t>(configuration.range.size()));
  }
}

void Free(Fleet& fleet, NodeRecord& record, const ip::Address& base, Effects& effects,
          absl::Time now) {
  const Configuration& configuration = record.configurations.at(base);
  fleet.off_nic.erase(base);
  fleet.judged.erase(configuration.range);
  for (size_t i = 0; i < configuration.slots.size(); ++i) {
    const Slot& slot = configuration.slots[i];
    const ip::Address address = configuration.AddressAt(i);
    if (slot.lessee != nullptr) {
      effects.history.push_back(EntryOf(HistoryEvent::kReleased, record.key, address, now, &slot));
    }
    effects.history.push_back(EntryOf(HistoryEvent::kDetached, record.key, address, now));
  }
  fleet.ledger.Release(record, base, now);
  effects.changed.insert(record.key);
  effects.desired.insert(record.key);
  if (record.configurations.empty() && record.wanted.empty()) {
    fleet.forgettable.emplace(record.key, now + fleet.policy.replaced_stays);
  }
}

void NoteUnheld(Fleet& fleet, const NodeKey& node, const ip::Address& address) {
  std::set<ip::Address>& used = fleet.used_unheld[node];
  if (used.size() < fleet.policy.nic_configurations) used.insert(address);
}

bool EndUnheld(Fleet& fleet, const NodeKey& node, const ip::Address& address) {
  const auto used = fleet.used_unheld.find(node);
  if (used == fleet.used_unheld.end() || used->second.erase(address) == 0) return false;
  if (used->second.empty()) fleet.used_unheld.erase(used);
  return true;
}

bool UsesUnheld(const Fleet& fleet, const NodeRecord& record) {
  const auto used = fleet.used_unheld.find(record.key);
  return used != fleet.used_unheld.end() &&
         std::any_of(used->second.begin(), used->second.end(),
                     [&record](const auto& address) { return record.Holding(address) == nullptr; });
}

void AdoptUsed(Fleet& fleet, Effects& effects, absl::Time now) {
  if (fleet.hold.active) return;  // Others may have yet to say that they have it.
  for (auto& [key, used] : fleet.used_unheld) {
    NodeRecord* const record = fleet.ledger.Find(key);
    if (record == nullptr || record->mode == NodeMode::kRetired) continue;
    for (auto it = used.begin(); it != used.end();) {
      const PoolEntry* const entry = fleet.ledger.pools().Offering(*it);
      if (entry == nullptr || HolderOf(fleet.ledger, *it) != nullptr ||
          !WhyNotAdopted(fleet, *record, *entry).empty()) {
        ++it;
        continue;
      }
      AdoptFree(fleet, *record, *it, now, effects);
      effects.greet_anew.emplace(key, "what pods use can be recorded by now: say it anew");
      it = used.erase(it);
    }
  }
  std::erase_if(fleet.used_unheld, [](const auto& entry) { return entry.second.empty(); });
}

bool MayBeClaimed(const Fleet& fleet, const NodeKey& node, const ip::Prefix& range) {
  if (!fleet.heard.contains(node)) return true;
  const auto has_any_of = [&range](const std::set<ip::Address>& addresses) {
    const auto first = addresses.lower_bound(range.base());
    return first != addresses.end() && range.Contains(*first);
  };
  if (const auto used = fleet.used_unheld.find(node);
      used != fleet.used_unheld.end() && has_any_of(used->second)) {
    return true;
  }
  for (auto it = fleet.doubled.lower_bound(range.base());
       it != fleet.doubled.end() && range.Contains(it->first); ++it) {
    if (it->second.claimant == node) return true;
  }
  const auto refused = fleet.refused_claims.find(node.name);
  return refused != fleet.refused_claims.end() && has_any_of(refused->second);
}

void StopWantingAll(Fleet& fleet, NodeRecord& record, Effects& effects) {
  std::vector<std::string> names;
  for (auto& [name, wanted] : record.wanted) {
    if (!wanted.given) {
      names.push_back(name);
    } else if (!wanted.given_back && record.mode != NodeMode::kRetired &&
               !MayBeClaimed(fleet, record.key, *wanted.given)) {
      wanted.given_back = true;
      wanted.problem = kGivenBack;
      effects.changed.insert(record.key);
    }
  }
  for (const std::string& name : names) fleet.ledger.SetWanted(record, name, std::nullopt);
  if (!names.empty()) effects.changed.insert(record.key);
}

void SetUse(Fleet& fleet, NodeRecord& record, Configuration& configuration, const UseChange& change,
            Effects& effects) {
  const Slot& slot = configuration.At(change.address);
  Slot next{.use = change.use, .generation = slot.generation, .since = change.at};
  if (change.assignment != nullptr) {
    next.generation = change.assignment->generation;
    next.lessee = slot.lessee != nullptr && *slot.lessee == change.assignment->lessee
                      ? slot.lessee
                      : std::make_shared<const node_api::Lessee>(change.assignment->lessee);
  }
  const Slot before = fleet.ledger.SetSlot(configuration, change.address, std::move(next));
  if (slot.lessee == before.lessee) return;
  if (before.lessee != nullptr) {
    effects.history.push_back(
        EntryOf(HistoryEvent::kReleased, record.key, change.address, change.at, &before));
  }
  if (slot.lessee != nullptr) {
    effects.history.push_back(
        EntryOf(HistoryEvent::kInUse, record.key, change.address, change.at, &slot));
  }
}

void RecordAssignment(Fleet& fleet, NodeRecord& record, Configuration& configuration,
                      const node_api::Assignment& assignment, Effects& effects) {
  const AddressState next = Next(configuration.state, AddressEvent::kAgentAssigns).value();
  if (next != configuration.state) {
    fleet.ledger.SetState(configuration, next, assignment.since);
    effects.attach.insert(record.key);
  }
  SetUse(fleet, record, configuration,
         {assignment.address, Use::kInUse, &assignment, assignment.since}, effects);
}

void TakeAssignment(Fleet& fleet, NodeRecord& record, const node_api::Assignment& assignment,
                    Effects& effects) {
  Configuration* configuration = record.Holding(assignment.address);
  if (configuration == nullptr) {
    if (!Adopt(fleet, record, assignment, effects)) {
      return NoteUnheld(fleet, record.key, assignment.address);
    }
    EndUnheld(fleet, record.key, assignment.address);
    configuration = record.Holding(assignment.address);
  }
  if (assignment.generation < configuration->At(assignment.address).generation) return;
  RecordAssignment(fleet, record, *configuration, assignment, effects);
}

std::string WhyNotAdopted(const Fleet& fleet, const NodeRecord& record, const PoolEntry& entry) {
  if (record.configurations.size() + record.wanted.size() >= fleet.policy.nic_configurations) {
    return fmt::format("its NIC takes {} IP configurations, and has them",
                       fleet.policy.nic_configurations);
  }
  const PoolSet& pools = fleet.ledger.pools();
  const size_t index = pools.IndexOf(entry.pool.spec().name);
  for (const PoolGroup& group : pools.GroupsFor(record)) {
    if (std::find(group.pools.begin(), group.pools.end(), index) != group.pools.end()) return "";
  }
  return fmt::format("pool {} does not serve this node", entry.pool.spec().name);
}

}  // namespace spoke::ipam
