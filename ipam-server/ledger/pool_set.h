// The pools in force, by their order, their names and what lies in them, and which of them serve a
// node. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ipam-server/ledger/node_record.h"
#include "ipam-server/pools/address_pool.h"
#include "ipam-server/pools/pool_plan.h"
#include "lib/ip/address.h"
#include "lib/ip/prefix.h"

namespace spoke::ipam {

// What one node draws from: pools of one family that serve the same pods, in their order.
struct PoolGroup {
  ip::Family family = ip::Family::kV4;
  std::vector<std::string> namespaces;
  TargetPolicy target;
  std::vector<size_t> pools;  // Indices into the PoolSet.
};

// A pool with how its addresses on NICs are used.
struct PoolEntry {
  AddressPool pool;
  AddressCounts counts;
  uint64_t asked = 0;  // Addresses that the cloud has yet to choose from it; in `counts` as well.

  uint64_t free() const { return pool.free() > asked ? pool.free() - asked : 0; }
};

// Not thread-safe, since GroupsFor() remembers what it has found. The Ledger owns it, and only the
// Ledger changes a pool.
class PoolSet {
 public:
  // `target`: for pools that have none of their own. Names must be unique.
  PoolSet(std::vector<PoolEntry> entries, const TargetPolicy& target);

  size_t size() const { return entries_.size(); }
  PoolEntry& operator[](size_t index) { return entries_[index]; }
  const PoolEntry& operator[](size_t index) const { return entries_[index]; }
  auto begin() { return entries_.begin(); }
  auto begin() const { return entries_.begin(); }
  auto end() { return entries_.end(); }
  auto end() const { return entries_.end(); }

  // Returns the index of the pool of that name; size(): there is none.
  size_t IndexOf(const std::string& name) const;
  // Returns the pool whose range has the address, which it may never hand out; nullptr: none has.
  const PoolEntry* Covering(const ip::Address& address) const;
  // Returns the pool that hands out the address; nullptr: none does.
  PoolEntry* Offering(const ip::Address& address);
  const PoolEntry* Offering(const ip::Address& address) const;

  // Returns what a node with these labels draws from. `subnets`: of its NIC, where known; then only
  // pools inside them serve it. The result lives as long as the pools stay the same.
  const std::vector<PoolGroup>& GroupsFor(const std::map<std::string, std::string>& labels,
                                          const std::string& vnet,
                                          const std::vector<ip::Prefix>& subnets) const;
  const std::vector<PoolGroup>& GroupsFor(const NodeRecord& record) const {
    return GroupsFor(record.labels, record.vnet, record.subnets);
  }

 private:
  struct Place {
    std::map<std::string, std::string> labels;
    std::string vnet;
    std::vector<ip::Prefix> subnets;

    auto operator<=>(const Place&) const = default;
  };

  std::vector<PoolEntry> entries_;
  absl::flat_hash_map<std::string, size_t> index_;  // Keyed by name.
  TargetPolicy target_;
  mutable std::map<Place, std::vector<PoolGroup>> groups_;
};

}  // namespace spoke::ipam
