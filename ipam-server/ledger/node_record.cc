#include "ipam-server/ledger/node_record.h"

#include <algorithm>
#include <utility>

#include "lib/base/check.h"

namespace spoke::ipam {

bool Slot::operator==(const Slot& other) const {
  const bool same_lessee =
      lessee == other.lessee ||
      (lessee != nullptr && other.lessee != nullptr && *lessee == *other.lessee);
  return use == other.use && generation == other.generation && since == other.since && same_lessee;
}

Configuration::Configuration(const ip::Prefix& range_of, std::string pool_of, std::string name_of,
                             absl::Time now)
    : range(range_of),
      pool(std::move(pool_of)),
      name(std::move(name_of)),
      since(now),
      slots(range_of.size(), Slot{.since = now}) {}

Slot& Configuration::At(const ip::Address& address) {
  CHECK(range.Contains(address), "the address is of this configuration");
  return slots[ip::Distance(range.base(), address)];
}

const Slot& Configuration::At(const ip::Address& address) const {
  CHECK(range.Contains(address), "the address is of this configuration");
  return slots[ip::Distance(range.base(), address)];
}

bool Configuration::IsAvailable() const {
  return std::all_of(slots.begin(), slots.end(),
                     [](const Slot& slot) { return slot.use == Use::kAvailable; });
}

absl::Time Configuration::AvailableSince() const {
  absl::Time last = since;
  for (const Slot& slot : slots) last = std::max(last, slot.since);
  return last;
}

uint64_t WantedEntry::size() const {
  const int bits = family == ip::Family::kV4 ? 32 : 128;
  return uint64_t{1} << static_cast<unsigned>(bits - prefix_length);
}

std::string_view NameOf(NodeMode mode) {
  switch (mode) {
    case NodeMode::kActive:
      return "active";
    case NodeMode::kDraining:
      return "draining";
    case NodeMode::kFrozen:
      return "frozen";
    case NodeMode::kRetired:
      return "retired";
  }
  return "active";
}

const Configuration* NodeRecord::Holding(const ip::Address& address) const {
  auto it = configurations.upper_bound(address);
  if (it == configurations.begin()) return nullptr;
  --it;
  return it->second.range.Contains(address) ? &it->second : nullptr;
}

Configuration* NodeRecord::Holding(const ip::Address& address) {
  return const_cast<Configuration*>(std::as_const(*this).Holding(address));
}

void AddressCounts::Add(const Configuration& configuration) {
  switch (configuration.state) {
    case AddressState::kFree:
      return;
    case AddressState::kAttaching:
      attaching += configuration.slots.size();
      return;
    case AddressState::kDetaching:
      detaching += configuration.slots.size();
      return;
    case AddressState::kAttached:
      break;
  }
  for (const Slot& slot : configuration.slots) {
    available += slot.use == Use::kAvailable ? 1 : 0;
    in_use += slot.use == Use::kInUse ? 1 : 0;
    cooldown += slot.use == Use::kCooldown ? 1 : 0;
  }
}

AddressCounts& AddressCounts::operator+=(const AddressCounts& other) {
  attaching += other.attaching;
  available += other.available;
  in_use += other.in_use;
  cooldown += other.cooldown;
  detaching += other.detaching;
  return *this;
}

AddressCounts& AddressCounts::operator-=(const AddressCounts& other) {
  attaching -= other.attaching;
  available -= other.available;
  in_use -= other.in_use;
  cooldown -= other.cooldown;
  detaching -= other.detaching;
  return *this;
}

AddressCounts CountAddresses(const NodeRecord& record) {
  AddressCounts counts;
  for (const auto& [base, configuration] : record.configurations) counts.Add(configuration);
  for (const auto& [name, wanted] : record.wanted) counts.Add(wanted);
  return counts;
}

AddressCounts CountAddresses(const Configuration& configuration) {
  AddressCounts counts;
  counts.Add(configuration);
  return counts;
}

NodeKey KeyOf(const node_api::Hello& hello) {
  return {.name = hello.node.node_name, .vm_id = hello.node.vm_id};
}

}  // namespace spoke::ipam
