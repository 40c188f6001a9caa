#include "ipam-server/core/fleet.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "fmt/core.h"
#include "lib/base/check.h"

namespace spoke::ipam {
namespace {

constexpr std::array kFamilies = {ip::Family::kV4, ip::Family::kV6};

void SetUse(HeldAddress& held, Use use, std::optional<Lessee> lessee, absl::Time now) {
  held.use = use;
  held.lessee = std::move(lessee);
  held.since = now;
}

}  // namespace

void Effects::Merge(Effects other) {
  changed.merge(other.changed);
  attach.merge(other.attach);
  desired.merge(other.desired);
  findings.insert(findings.end(), std::make_move_iterator(other.findings.begin()),
                  std::make_move_iterator(other.findings.end()));
}

Fleet::Fleet(const std::vector<PoolSpec>& pools, const FleetPolicy& policy) : policy_(policy) {
  for (const PoolSpec& spec : pools) pools_.emplace_back(spec);
}

absl::Status Fleet::Load(NodeRecord record) {
  for (const auto& entry : record.addresses) {
    const ip::Address& address = entry.first;
    const auto pool = std::find_if(pools_.begin(), pools_.end(), [&](const AddressPool& candidate) {
      return candidate.Owns(address);
    });
    if (pool == pools_.end()) {
      return absl::FailedPreconditionError(fmt::format(
          "node {} ({}) holds {}, which no configured pool covers: restore the pool \"{}\" in the "
          "configuration",
          record.key.name, record.key.vm_id, address.ToString(), entry.second.pool));
    }
    if (!pool->Hold(address)) {
      return absl::FailedPreconditionError(fmt::format(
          "address {} is held by two nodes, {} and {}: the store is damaged, restore a backup",
          address.ToString(), holders_.at(address).name, record.key.name));
    }
    holders_.emplace(address, record.key);
  }
  const NodeKey key = record.key;
  nodes_.insert_or_assign(key, std::move(record));
  return absl::OkStatus();
}

Effects Fleet::OnHello(const Hello& hello, absl::Time now) {
  NodeRecord& record = nodes_[hello.key];
  record.key = hello.key;
  ++record.session_epoch;

  Effects effects;
  effects.changed.insert(hello.key);
  if (record.nic_mac != hello.nic_mac) {
    // The addresses have to follow to the NIC that the node has now.
    record.nic_mac = hello.nic_mac;
    if (!record.addresses.empty()) effects.attach.insert(hello.key);
  }
  EndLendingsOf(record, hello, now);
  record.boot_id = hello.boot_id;
  for (const Lending& lending : hello.lent) TakeLending(record, lending, effects);
  for (const ip::Address& address : hello.cooling) {
    const auto it = record.addresses.find(address);
    if (it != record.addresses.end() && it->second.use == Use::kIdle) {
      SetUse(it->second, Use::kCooling, std::nullopt, now);
    }
  }
  effects.Merge(Plan(hello.key, now));
  return effects;
}

// Whatever the agent does not say is lent, is not. After a reboot it cannot remember what to keep
// from reuse, so the old lendings cool from now on.
void Fleet::EndLendingsOf(NodeRecord& record, const Hello& hello, absl::Time now) {
  const bool rebooted = record.boot_id != hello.boot_id;
  absl::flat_hash_set<std::string> still_lent;
  for (const Lending& lending : hello.lent) still_lent.insert(lending.address.ToBytes());
  for (auto& [address, held] : record.addresses) {
    if (still_lent.contains(address.ToBytes())) continue;
    if (rebooted) held.generation = 0;  // A new journal counts from the beginning.
    if (held.use == Use::kLent) {
      SetUse(held, rebooted ? Use::kCooling : Use::kIdle, std::nullopt, now);
    } else if (held.use == Use::kCooling && !rebooted) {
      SetUse(held, Use::kIdle, std::nullopt, now);
    }
  }
}

void Fleet::TakeLending(NodeRecord& record, const Lending& lending, Effects& effects) {
  auto it = record.addresses.find(lending.address);
  if (it == record.addresses.end()) {
    if (!Adopt(record, lending, effects)) return;
    it = record.addresses.find(lending.address);
  }
  HeldAddress& held = it->second;
  if (lending.generation < held.generation) return;
  held.generation = lending.generation;
  SetUse(held, Use::kLent, lending.lessee, lending.since);
}

bool Fleet::Adopt(NodeRecord& record, const Lending& lending, Effects& effects) {
  const ip::Address& address = lending.address;
  const auto report = [&](Finding::Kind kind, std::string detail) {
    effects.findings.push_back({kind, record.key, address, std::move(detail)});
  };
  if (const NodeRecord* holder = HolderOf(address); holder != nullptr) {
    report(Finding::Kind::kHeldElsewhere,
           fmt::format("held by node {} ({})", holder->key.name, holder->key.vm_id));
    return false;
  }
  const auto pool = std::find_if(pools_.begin(), pools_.end(),
                                 [&](const AddressPool& p) { return p.Owns(address); });
  if (pool == pools_.end()) {
    report(Finding::Kind::kForeign, "in none of the configured pools");
    return false;
  }
  CHECK(pool->Hold(address), "an address without a holder is free in its pool");
  holders_.emplace(address, record.key);
  record.addresses[address] = {
      .pool = pool->spec().name,
      .configuration = fmt::format("spoke-{}", record.next_configuration++),
      .state = LeaseState::kAttaching,  // Until the cloud confirms; the pod is not disturbed.
      .since = lending.since};
  effects.attach.insert(record.key);
  report(Finding::Kind::kAdopted, "was free here; the pod keeps it");
  return true;
}

Effects Fleet::OnReport(const NodeKey& key, const LendingReport& report, absl::Time now) {
  Effects effects;
  const auto node = nodes_.find(key);
  if (node == nodes_.end()) return effects;
  auto& addresses = node->second.addresses;
  for (const Lending& lending : report.lent) {
    const auto it = addresses.find(lending.address);
    if (it == addresses.end() || lending.generation <= it->second.generation) continue;
    it->second.generation = lending.generation;
    SetUse(it->second, Use::kLent, lending.lessee, lending.since);
    effects.changed.insert(key);
  }
  for (const Release& release : report.released) {
    const auto it = addresses.find(release.address);
    if (it == addresses.end() || it->second.use != Use::kLent ||
        it->second.generation != release.generation) {
      continue;
    }
    SetUse(it->second, Use::kCooling, std::nullopt, now);
    effects.changed.insert(key);
  }
  for (const ip::Address& address : report.cooled) {
    const auto it = addresses.find(address);
    if (it == addresses.end() || it->second.use != Use::kCooling) continue;
    SetUse(it->second, Use::kIdle, std::nullopt, now);
    effects.changed.insert(key);
  }
  effects.Merge(Plan(key, now));
  return effects;
}

Effects Fleet::OnAttached(const NodeKey& key, const std::vector<ip::Address>& addresses,
                          absl::Time now) {
  Effects effects;
  const auto node = nodes_.find(key);
  if (node == nodes_.end()) return effects;
  for (const ip::Address& address : addresses) {
    const auto it = node->second.addresses.find(address);
    if (it == node->second.addresses.end()) continue;
    HeldAddress& held = it->second;
    const auto next = Next(held.state, LeaseEvent::kCloudAttached);
    if (!next || *next == held.state) continue;
    held.state = *next;
    if (held.use == Use::kIdle) held.since = now;
    effects.changed.insert(key);
    effects.desired.insert(key);
  }
  return effects;
}

Effects Fleet::Plan(const NodeKey& key, absl::Time now) {
  Effects effects;
  const auto node = nodes_.find(key);
  if (node == nodes_.end()) return effects;
  NodeRecord& record = node->second;
  for (const ip::Family family : kFamilies) {
    if (!HasPoolFor(family)) continue;
    const AddressCounts counts = CountAddresses(record, family);
    const uint32_t target = TargetAddresses(policy_.target, counts.lent + counts.cooling);
    for (uint32_t have = counts.total(); have < target; ++have) {
      const auto taken = TakeFromPools(family);
      if (!taken) break;
      const auto& [address, pool] = *taken;
      holders_.emplace(address, key);
      record.addresses[address] = {
          .pool = pool,
          .configuration = fmt::format("spoke-{}", record.next_configuration++),
          .state = Next(LeaseState::kFree, LeaseEvent::kAssign).value(),
          .since = now};
      effects.changed.insert(key);
      effects.attach.insert(key);
    }
  }
  return effects;
}

bool Fleet::HasPoolFor(ip::Family family) const {
  return std::any_of(pools_.begin(), pools_.end(),
                     [&](const AddressPool& pool) { return pool.spec().cidr.family() == family; });
}

// Pools are drawn from in the order of the configuration.
std::optional<std::pair<ip::Address, std::string>> Fleet::TakeFromPools(ip::Family family) {
  for (AddressPool& pool : pools_) {
    if (pool.spec().cidr.family() != family) continue;
    if (auto address = pool.Take(); address.ok()) return {{*address, pool.spec().name}};
  }
  return std::nullopt;
}

const NodeRecord* Fleet::Find(const NodeKey& key) const {
  const auto it = nodes_.find(key);
  return it == nodes_.end() ? nullptr : &it->second;
}

const NodeRecord* Fleet::HolderOf(const ip::Address& address) const {
  const auto it = holders_.find(address);
  return it == holders_.end() ? nullptr : Find(it->second);
}

const AddressPool* Fleet::PoolOf(const ip::Address& address) const {
  const auto it = std::find_if(pools_.begin(), pools_.end(), [&](const AddressPool& pool) {
    return pool.spec().cidr.Contains(address);
  });
  return it == pools_.end() ? nullptr : &*it;
}

uint32_t Fleet::TargetOf(const NodeRecord& record) const {
  uint32_t target = 0;
  for (const ip::Family family : kFamilies) {
    if (!HasPoolFor(family)) continue;
    const AddressCounts counts = CountAddresses(record, family);
    target += TargetAddresses(policy_.target, counts.lent + counts.cooling);
  }
  return target;
}

std::string Fleet::ShortageOf(const NodeRecord& record) const {
  const uint32_t target = TargetOf(record);
  const AddressCounts counts = CountAddresses(record);
  if (counts.total() >= target) return "";
  std::string why = fmt::format("has {} of {} addresses: ", counts.total(), target);
  for (const AddressPool& pool : pools_) {
    if (&pool != &pools_.front()) why += "; ";
    why += pool.Describe();
  }
  return why;
}

}  // namespace spoke::ipam
