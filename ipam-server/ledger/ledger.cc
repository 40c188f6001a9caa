#include "ipam-server/ledger/ledger.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "fmt/core.h"
#include "lib/base/check.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

std::vector<PoolEntry> EmptyPools(const std::vector<PoolSpec>& specs) {
  std::vector<PoolEntry> entries;
  entries.reserve(specs.size());
  for (const PoolSpec& spec : specs) entries.push_back({AddressPool(spec), {}});
  return entries;
}

}  // namespace

Ledger::Ledger(const std::vector<PoolSpec>& pools, const TargetPolicy& target,
               absl::Duration cooldown)
    : cooldown_(cooldown), target_(target), pools_(EmptyPools(pools), target) {}

// --- Whole records. ---

absl::StatusOr<NodeRecord*> Ledger::Upsert(NodeRecord record) {
  std::vector<PoolEntry*> held_in;  // The pool of each configuration.
  held_in.reserve(record.configurations.size());
  for (const auto& held : record.configurations) {
    const Configuration& configuration = held.second;
    const auto entry = std::find_if(pools_.begin(), pools_.end(), [&](const PoolEntry& candidate) {
      return candidate.pool.Owns(configuration.range);
    });
    if (entry == pools_.end()) {
      return absl::FailedPreconditionError(fmt::format(
          "node {} ({}) holds {}, which no configured pool covers: restore the pool \"{}\" in the "
          "configuration",
          record.key.name, record.key.vm_id, configuration.range.ToString(), configuration.pool));
    }
    const NodeRecord* holder = entry->pool.OwnerOf(held.first);
    if (holder != nullptr && holder->key != record.key) {
      return absl::FailedPreconditionError(fmt::format(
          "address {} is held by two nodes, {} and {}: the store is damaged, restore a backup",
          held.first.ToString(), holder->key.name, record.key.name));
    }
    held_in.push_back(&*entry);
  }
  if (nodes_.contains(record.key)) Unload(record.key);
  NodeRecord& loaded = nodes_[record.key];
  loaded = std::move(record);
  auto entry = held_in.begin();
  for (auto& [base, configuration] : loaded.configurations) {
    CHECK((*entry)->pool.Hold(configuration.range, &loaded), "nobody else holds it");
    configuration.pool = (*entry)->pool.spec().name;  // It may have had another name when stored.
    (*entry)->counts.Add(configuration);
    ++entry;
  }
  for (const auto& [name, wanted] : loaded.wanted) CountWanted(wanted, true);
  if (loaded.instance.empty()) return &loaded;
  // The newer of two under one name has the place; a retired one has it while nobody else does.
  if (loaded.mode == NodeMode::kRetired) {
    on_instance_.try_emplace(loaded.instance, loaded.key);
  } else {
    on_instance_[loaded.instance] = loaded.key;
  }
  return &loaded;
}

NodeRecord Ledger::Unload(const NodeKey& key) {
  auto node = nodes_.extract(key);
  CHECK(!node.empty(), "only a record that is there is taken out");
  NodeRecord& record = node.mapped();
  LeaveInstance(record);
  for (const auto& [base, configuration] : record.configurations) {
    PoolEntry& entry = pools_[pools_.IndexOf(configuration.pool)];
    entry.counts -= CountAddresses(configuration);
    CHECK(entry.pool.Release(configuration.range, absl::InfinitePast()),
          "the pool knew it was held");
  }
  for (const auto& [name, wanted] : record.wanted) CountWanted(wanted, false);
  return std::move(record);
}

std::set<NodeKey> Ledger::FinishLoading(absl::Time now) {
  absl::Time last = absl::InfinitePast();
  for (const auto& [key, record] : nodes_) {
    for (const auto& [base, configuration] : record.configurations) {
      last = std::max(last, configuration.since);
    }
    for (const auto& [range, at] : record.released) last = std::max(last, at);
  }
  std::set<NodeKey> changed;
  std::vector<std::pair<absl::Time, ip::Prefix>> released;
  for (auto& [key, record] : nodes_) {
    for (auto& [base, configuration] : record.configurations) {
      for (Slot& slot : configuration.slots) {
        if (slot.use == Use::kCooldown && slot.since + cooldown_ > last) slot.since = now;
      }
    }
    for (auto& [range, at] : record.released) {
      if (at + cooldown_ > last && std::exchange(at, now) != now) changed.insert(key);
      released.emplace_back(at, range);
    }
  }
  std::sort(released.begin(), released.end());
  for (const auto& [at, range] : released) {
    PoolEntry* entry = pools_.Offering(range.base());
    // A clock that was put back must not keep an address from use for longer than the cooldown.
    if (entry != nullptr) entry->pool.Cool(range, std::min(at, now) + cooldown_);
  }
  EndCooldowns(now);
  return changed;
}

NodeRecord* Ledger::Find(const NodeKey& key) {
  const auto it = nodes_.find(key);
  return it == nodes_.end() ? nullptr : &it->second;
}

const NodeRecord* Ledger::Find(const NodeKey& key) const {
  const auto it = nodes_.find(key);
  return it == nodes_.end() ? nullptr : &it->second;
}

// --- What a node holds. ---

Configuration* Ledger::Take(NodeRecord& record, size_t pool, absl::Time now) {
  const auto unit = pools_[pool].pool.Take(&record, now);
  if (!unit.ok()) return nullptr;
  Configuration& configuration = Add(record, pools_[pool], *unit, now);
  configuration.state = Next(AddressState::kFree, AddressEvent::kAssign).value();
  pools_[pool].counts.Add(configuration);
  return &configuration;
}

Configuration& Ledger::Hold(NodeRecord& record, const ip::Prefix& unit, AddressState state,
                            absl::Time since) {
  PoolEntry* entry = pools_.Offering(unit.base());
  CHECK(entry != nullptr && entry->pool.Hold(unit, &record), "a unit without a holder can be held");
  Configuration& configuration = Add(record, *entry, unit, since);
  configuration.state = state;
  entry->counts.Add(configuration);
  return configuration;
}

Configuration& Ledger::Add(NodeRecord& record, PoolEntry& entry, const ip::Prefix& unit,
                           absl::Time now) {
  const auto [it, inserted] = record.configurations.try_emplace(
      unit.base(), unit, entry.pool.spec().name, std::string(), now);
  CHECK(inserted, "a unit that was free is on no NIC");
  return it->second;
}

void Ledger::Release(NodeRecord& record, const ip::Address& base, absl::Time now) {
  const auto it = record.configurations.find(base);
  CHECK(it != record.configurations.end(), "only what is held is released");
  const ip::Prefix range = it->second.range;
  PoolEntry& entry = pools_[pools_.IndexOf(it->second.pool)];
  entry.counts -= CountAddresses(it->second);
  record.configurations.erase(it);
  std::erase_if(record.released,
                [&](const auto& released) { return released.second + cooldown_ <= now; });
  record.released[range] = now;
  CHECK(entry.pool.Release(range, now + cooldown_), "the pool knew it was held");
}

AddressCounts& Ledger::CountsOf(const Configuration& configuration) {
  const size_t index = pools_.IndexOf(configuration.pool);
  CHECK(index < pools_.size(), "a configuration is of a pool there is");
  return pools_[index].counts;
}

void Ledger::SetState(Configuration& configuration, AddressState state, absl::Time since) {
  AddressCounts& counts = CountsOf(configuration);
  counts -= CountAddresses(configuration);
  configuration.state = state;
  configuration.since = since;
  counts.Add(configuration);
}

Slot Ledger::SetSlot(Configuration& configuration, const ip::Address& address, Slot slot) {
  AddressCounts& counts = CountsOf(configuration);
  counts -= CountAddresses(configuration);
  Slot former = std::exchange(configuration.At(address), std::move(slot));
  counts.Add(configuration);
  return former;
}

void Ledger::SetWanted(NodeRecord& record, const std::string& name,
                       std::optional<WantedEntry> wanted) {
  if (const auto it = record.wanted.find(name); it != record.wanted.end()) {
    CountWanted(it->second, false);
    if (!wanted) {
      record.wanted.erase(it);
      return;
    }
  }
  if (!wanted) return;
  CountWanted(*wanted, true);
  record.wanted[name] = *std::move(wanted);
}

void Ledger::CountWanted(const WantedEntry& wanted, bool add) {
  const size_t index = pools_.IndexOf(wanted.pool);
  if (index >= pools_.size()) return;  // It was found on the NIC, or its pool is no more.
  PoolEntry& entry = pools_[index];
  AddressCounts counts;
  counts.Add(wanted);
  if (add) {
    entry.asked += wanted.size();
    entry.counts += counts;
  } else {
    entry.asked -= wanted.size();
    entry.counts -= counts;
  }
}

// --- Instances of the cloud. ---

std::optional<NodeKey> Ledger::SetInstance(NodeRecord& record, std::string instance) {
  LeaveInstance(record);
  record.instance = std::move(instance);
  const auto [there, was_free] = on_instance_.try_emplace(record.instance, record.key);
  if (was_free) return std::nullopt;
  return std::exchange(there->second, record.key);
}

void Ledger::LeaveInstance(const NodeRecord& record) {
  const auto on = on_instance_.find(record.instance);
  if (on != on_instance_.end() && on->second == record.key) on_instance_.erase(on);
}

const NodeRecord* Ledger::NodeOn(const std::string& instance) const {
  const auto it = on_instance_.find(instance);
  return it == on_instance_.end() ? nullptr : Find(it->second);
}

// --- Quarantine and pools. ---

void Ledger::SetQuarantine(const ip::Address& address, std::optional<Quarantine> quarantine) {
  auto& [entries, ends] = quarantine_;
  if (const auto it = entries.find(address); it != entries.end() && it->second.until) {
    ends.erase({*it->second.until, address});
  }
  PoolEntry* entry = pools_.Offering(address);
  if (quarantine) {
    if (quarantine->until) ends.emplace(*quarantine->until, address);
    entries[address] = *std::move(quarantine);
    if (entry != nullptr) entry->pool.SetQuarantined(*entry->pool.UnitOf(address), true);
    return;
  }
  entries.erase(address);
  if (entry == nullptr) return;
  const ip::Prefix unit = *entry->pool.UnitOf(address);
  const auto other = entries.lower_bound(unit.base());
  if (other == entries.end() || !unit.Contains(other->first)) {
    entry->pool.SetQuarantined(unit, false);
  }
}

absl::Status Ledger::SetPools(const std::vector<PoolSpec>& specs) {
  // Everything is looked at first, so that a refusal changes nothing.
  for (const PoolEntry& entry : pools_) {
    const auto next = std::find_if(specs.begin(), specs.end(), [&](const PoolSpec& spec) {
      return spec.name == entry.pool.spec().name;
    });
    RETURN_IF_ERROR(CheckFits(entry.pool, next == specs.end() ? nullptr : &*next));
  }
  std::vector<PoolEntry> pools;
  pools.reserve(specs.size());  // A vector that grows copies its pools, with all their addresses.
  std::vector<std::pair<size_t, bool>> other;  // Those that cover something else, or are new.
  for (const PoolSpec& spec : specs) {
    const size_t before = pools_.IndexOf(spec.name);
    const bool is_new = before == pools_.size();
    if (is_new || pools_[before].pool.spec().cidr != spec.cidr) {
      other.emplace_back(pools.size(), is_new);
    }
    if (is_new) {
      pools.push_back({AddressPool(spec), {}});
      continue;
    }
    pools.push_back(std::move(pools_[before]));
    if (pools.back().pool.spec() != spec) pools.back().pool.Respecify(spec);
  }
  pools_ = PoolSet(std::move(pools), target_);
  for (const auto& [index, is_new] : other) FillPool(pools_[index], is_new);
  return absl::OkStatus();
}

// `spec`: what the pool is to become; nullptr: it is to go.
absl::Status Ledger::CheckFits(const AddressPool& pool, const PoolSpec* spec) const {
  const auto outside = pool.InUseOutside(spec);
  if (!outside) return absl::OkStatus();
  const std::string& name = pool.spec().name;
  const NodeRecord* holder = pool.OwnerOf(outside->base());
  if (holder == nullptr) {
    return absl::FailedPreconditionError(fmt::format(
        "pool {}: {} is in cooldown or in quarantine and would be outside; wait, or lift the "
        "quarantine (see: spokectl ip show {})",
        name, outside->ToString(), outside->base().ToString()));
  }
  return absl::FailedPreconditionError(fmt::format(
      "pool {}: {} is on node {} and would be outside; drain the nodes that use it first (see: "
      "spokectl ip list --pool {})",
      name, outside->ToString(), holder->key.name, name));
}

// What is known of addresses that were in no pool, or in another, before. None of them is held.
void Ledger::FillPool(PoolEntry& entry, bool is_new) {
  AddressPool& pool = entry.pool;
  const auto is_free = [&](const ip::Address& address) {
    return pool.StateOf(address) == AddressPool::State::kFree;
  };
  for (const auto& [address, quarantine] : quarantine_.entries) {
    if (is_free(address)) pool.SetQuarantined(*pool.UnitOf(address), true);
  }
  std::vector<std::pair<absl::Time, ip::Prefix>> released;
  for (const auto& [key, record] : nodes_) {
    for (const auto& [range, at] : record.released) {
      if (is_free(range.base())) released.emplace_back(at, range);
    }
    for (const auto& [name, wanted] : record.wanted) {
      if (is_new && wanted.pool == pool.spec().name) CountWanted(wanted, true);
    }
  }
  std::sort(released.begin(), released.end());
  for (const auto& [at, range] : released) pool.Cool(range, at + cooldown_);
}

void Ledger::RestFree(absl::Time now) {
  for (PoolEntry& entry : pools_) entry.pool.RestFree(now + cooldown_);
}

void Ledger::EndCooldowns(absl::Time now) {
  for (PoolEntry& entry : pools_) entry.pool.EndCooldowns(now);
}

void CheckInvariants(const Ledger& ledger) {
  const PoolSet& pools = ledger.pools();
  std::vector<AddressCounts> counts(pools.size());
  std::vector<uint64_t> held(pools.size());
  std::vector<uint64_t> asked(pools.size());
  for (const auto& [key, record] : ledger.nodes()) {
    CHECK(key == record.key, "a record is found by its key");
    const NodeRecord* there = ledger.NodeOn(record.instance);
    CHECK(there == nullptr || there->instance == record.instance, "a node is where it says");
    for (const auto& [base, configuration] : record.configurations) {
      CHECK(base == configuration.range.base(), "a configuration is found by its first address");
      CHECK(configuration.slots.size() == configuration.range.size(), "one slot an address");
      const size_t index = pools.IndexOf(configuration.pool);
      CHECK(index < pools.size(), "a configuration is of a pool there is");
      CHECK(pools[index].pool.OwnerOf(base) == &record, "the pool knows who holds a unit");
      for (const Slot& slot : configuration.slots) {
        CHECK((slot.use == Use::kInUse) == (slot.lessee != nullptr),
              "a lessee exactly when assigned");
      }
      counts[index].Add(configuration);
      held[index] += configuration.slots.size();
    }
    for (const auto& [name, wanted] : record.wanted) {
      if (wanted.given) {
        const auto same = record.configurations.find(wanted.given->base());
        CHECK(same == record.configurations.end() || same->second.range != *wanted.given,
              "what a node holds is no longer a thing that it was given and cannot use");
      }
      const size_t index = pools.IndexOf(wanted.pool);
      if (index >= pools.size()) continue;
      counts[index].Add(wanted);
      asked[index] += wanted.size();
    }
  }
  for (size_t i = 0; i < pools.size(); ++i) {
    CHECK(pools[i].counts == counts[i], "the counts are what counting gives");
    CHECK(pools[i].pool.held() == held[i], "a pool holds just what the records hold");
    CHECK(pools[i].asked == asked[i], "a pool knows what the cloud has yet to choose from it");
  }
  for (const auto& [address, quarantine] : ledger.quarantine().entries) {
    const PoolEntry* entry = pools.Offering(address);
    if (entry == nullptr) continue;
    const AddressPool::State state = entry->pool.StateOf(address);
    CHECK(state == AddressPool::State::kQuarantined || state == AddressPool::State::kHeld,
          "what is in quarantine can be handed to nobody");
  }
}

// --- Who is where. ---

const NodeRecord* FindByName(const Ledger& ledger, const std::string& name) {
  const auto& nodes = ledger.nodes();
  for (auto it = nodes.lower_bound({name, ""}); it != nodes.end() && it->first.name == name; ++it) {
    if (it->second.mode != NodeMode::kRetired) return &it->second;
  }
  return nullptr;
}

const NodeRecord* HolderOf(const Ledger& ledger, const ip::Address& address) {
  const PoolEntry* entry = ledger.pools().Covering(address);
  return entry == nullptr ? nullptr : entry->pool.OwnerOf(address);
}

bool HasItsInstance(const Ledger& ledger, const NodeRecord& record) {
  if (record.instance.empty()) return true;
  const NodeRecord* there = ledger.NodeOn(record.instance);
  return there == nullptr || there == &record;
}

bool HasAddresses(const NodeRecord& record) {
  return !record.configurations.empty() || !record.wanted.empty();
}

std::vector<NodeKey> NodesWithAddresses(const Ledger& ledger) {
  std::vector<NodeKey> nodes;
  for (const auto& [key, record] : ledger.nodes()) {
    if (HasAddresses(record)) nodes.push_back(key);
  }
  return nodes;
}

AddressCounts CountAddresses(const Ledger& ledger) {
  AddressCounts counts;
  for (const PoolEntry& entry : ledger.pools()) counts += entry.counts;
  return counts;
}

}  // namespace spoke::ipam
