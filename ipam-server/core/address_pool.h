// Which addresses of one subnet are free. Pure: no I/O, no clock, no locks.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "ipam-server/core/pool_plan.h"
#include "lib/ip/address.h"
#include "lib/ip/prefix.h"

namespace spoke::ipam {

struct PoolSpec {
  std::string name;
  ip::Prefix cidr;
  // Addresses at the two ends that are never handed out. The defaults are what Azure keeps of every
  // subnet: the network, three for the platform, and the last.
  uint32_t reserve_first = 4;
  uint32_t reserve_last = 1;
  uint32_t block_length = 0;  // Prefix length of the blocks handed out; 0: single addresses.
  std::string vnet;           // The virtual network the subnet is in; empty: any.
  std::map<std::string, std::string> node_labels;  // A node must bear all of them.
  std::vector<std::string> namespaces;             // Sorted; none: for pods of all.
  std::optional<TargetPolicy> target;              // In place of the server's.
  bool from_file = false;  // From the server's configuration, not applied as an object.

  bool operator==(const PoolSpec&) const = default;
};

// An index over the node records, rebuilt from them at start: the store is the truth.
// Not thread-safe; the Fleet owns it. Memory grows with the addresses in use, not with the subnet.
class AddressPool {
 public:
  explicit AddressPool(PoolSpec spec);

  // The next free address, now held. The longest unused comes first: an address just returned is
  // the last to be handed out again.
  // Errors: kResourceExhausted (the message names the pool and its counts).
  absl::StatusOr<ip::Address> Take();

  // Marks `address` as held: at start, and for an address an agent proves it has. False, and
  // nothing changes, when it is held already or is none of this pool.
  bool Hold(const ip::Address& address);

  // False, and nothing changes, when it was not held.
  bool Return(const ip::Address& address);

  // Whether the pool may hand `address` out.
  bool Owns(const ip::Address& address) const;
  bool Holds(const ip::Address& address) const;

  const PoolSpec& spec() const { return spec_; }
  uint64_t usable() const { return usable_; }
  uint64_t held() const { return held_.size(); }
  uint64_t free() const { return usable_ - held_.size(); }

  // "pool default (10.1.0.0/24): 251 usable, 251 attached, 0 free"
  std::string Describe() const;

 private:
  uint64_t OffsetOf(const ip::Address& address) const;
  ip::Address AddressAt(uint64_t offset) const;

  PoolSpec spec_;
  uint64_t usable_;
  uint64_t never_used_ = 0;        // Offsets from here on have not been handed out by Take().
  std::deque<uint64_t> returned_;  // Oldest first; may name offsets that were held again since.
  absl::flat_hash_set<uint64_t> held_;
};

}  // namespace spoke::ipam
