#include "ipam-server/audit/audit_snapshot.h"

#include <algorithm>
#include <utility>

namespace spoke::ipam {
namespace {

AuditNode NodeOf(const NodeKey& key) { return {key.name, key.vm_id}; }

AuditState StateOf(AddressState state) {
  switch (state) {
    case AddressState::kAttaching:
      return AuditState::kAttaching;
    case AddressState::kDetaching:
      return AuditState::kDetaching;
    case AddressState::kAttached:
    case AddressState::kFree:
      break;
  }
  return AuditState::kAttached;
}

AuditUse UseOf(Use use) {
  switch (use) {
    case Use::kAvailable:
      return AuditUse::kAvailable;
    case Use::kInUse:
      return AuditUse::kInUse;
    case Use::kCooldown:
      return AuditUse::kCooldown;
  }
  return AuditUse::kAvailable;
}

CloudNic Describe(const NicAddresses& nic) {
  CloudNic out{.node = NodeOf(nic.node), .nic_mac = nic.nic_mac};
  for (const IpConfiguration& configuration : nic.configurations) {
    for (uint64_t i = 0; i < configuration.range.size(); ++i) {
      out.configurations.emplace(ip::Advance(configuration.range.base(), i), configuration.name);
    }
  }
  return out;
}

// A cloud that knows instances only is told whose they are; those of nobody are none of ours.
std::vector<CloudNic> NicsOf(const std::vector<NicAddresses>& listing,
                             const std::map<std::string, NodeKey>& on_instance) {
  std::vector<CloudNic> nics;
  for (NicAddresses nic : listing) {
    if (nic.node.name.empty()) {
      const auto node = on_instance.find(nic.instance);
      if (node == on_instance.end()) continue;
      nic.node = node->second;
    }
    nics.push_back(Describe(nic));
  }
  return nics;
}

AgentInventory Describe(const NodeKey& key, const node_api::Inventory& inventory) {
  AgentInventory out{.node = NodeOf(key), .held = inventory.held};
  for (const node_api::Assignment& assignment : inventory.in_use) {
    out.in_use.push_back({.address = assignment.address,
                          .generation = assignment.generation,
                          .container_id = assignment.lessee.container_id,
                          .ifname = assignment.lessee.ifname,
                          .since = assignment.since});
  }
  return out;
}

}  // namespace

StoredNode StoredNodeOf(const NodeRecord& record, const Quarantines& quarantines) {
  StoredNode node{.node = NodeOf(record.key),
                  .nic_mac = record.nic_mac,
                  .retired = record.mode == NodeMode::kRetired};
  for (const auto& [base, configuration] : record.configurations) {
    const bool withheld = quarantines.Withholds(configuration.range);
    for (size_t i = 0; i < configuration.slots.size(); ++i) {
      const Slot& slot = configuration.slots[i];
      StoredAddress& address = node.addresses.emplace_back();
      address.address = configuration.AddressAt(i);
      address.state = StateOf(configuration.state);
      address.use = UseOf(slot.use);
      address.configuration = configuration.name;
      address.pool = configuration.pool;
      address.since = std::max(configuration.since, slot.since);
      address.generation = slot.generation;
      address.withheld = withheld;
      if (slot.lessee == nullptr) continue;
      address.container_id = slot.lessee->container_id;
      address.ifname = slot.lessee->ifname;
    }
  }
  for (const auto& [name, wanted] : record.wanted) {
    for (uint64_t i = 0; wanted.given && i < wanted.given->size(); ++i) {
      StoredAddress& address = node.addresses.emplace_back();
      address.address = ip::Advance(wanted.given->base(), i);
      address.state = AuditState::kAttaching;
      address.configuration = name;
      address.pool = wanted.pool;
      address.since = wanted.since;
      address.chosen = true;
    }
  }
  return node;
}

void AuditSnapshot::Add(const PoolEntry& entry) {
  input.pools[entry.pool.spec().name] = {entry.pool.spec().cidr};
}

void AuditSnapshot::Add(const NodeRecord& record, const Quarantines& quarantines) {
  stored.emplace(record.key, input.store.size());
  input.store.push_back(StoredNodeOf(record, quarantines));
  if (!record.instance.empty()) on_instance[record.instance] = record.key;
  for (const auto& [range, at] : record.released) {
    for (uint64_t n = 0; n < range.size(); ++n) input.freed[ip::Advance(range.base(), n)] = at;
  }
}

const AuditInput& AuditSnapshot::Finish() {
  if (listing) input.cloud = NicsOf(*listing, on_instance);
  input.agents.clear();
  for (const auto& [key, inventory] : inventories) input.agents.push_back(Describe(key, inventory));
  return input;
}

}  // namespace spoke::ipam
