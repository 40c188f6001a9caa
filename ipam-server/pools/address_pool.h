// Which addresses of one subnet are free, held, in cooldown or quarantined. Pure: no I/O, no clock,
// no locks.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ipam-server/pools/pool_plan.h"
#include "lib/ip/address.h"
#include "lib/ip/prefix.h"

namespace spoke::ipam {

struct NodeRecord;

struct PoolSpec {
  std::string name;
  ip::Prefix cidr;
  // Addresses at the two ends that are never handed out. The defaults are what Azure keeps of every
  // subnet: the network, three for the platform, and the last.
  uint32_t reserve_first = 4;
  uint32_t reserve_last = 1;
  // The prefix length of the blocks it is handed out in; 0: single addresses. Only whole blocks
  // that hold no address of the two ends are used.
  uint32_t block_length = 0;
  std::string vnet;                                // Empty: for nodes of every virtual network.
  std::map<std::string, std::string> node_labels;  // A node must have all of them.
  std::vector<std::string> namespaces;             // Sorted; empty: for pods of all others.
  std::optional<TargetPolicy> target;              // Absent: the server's own.
  bool from_file = false;                          // It is of the configuration file.

  bool operator==(const PoolSpec&) const = default;
};

// An index over the node records, rebuilt from them at start: the store is the truth.
//
// It hands out units: single addresses, or whole blocks. All counts are in addresses. Not
// thread-safe; the Fleet owns it. Memory grows with the units in use, not with the subnet.
class AddressPool {
 public:
  explicit AddressPool(PoolSpec spec);

  // The next free unit, now held by `owner`: first those that were never used, then the one that
  // was released the longest ago. `owner` is borrowed and only handed back by OwnerOf().
  // Errors: kResourceExhausted (the message names the pool and its counts).
  absl::StatusOr<ip::Prefix> Take(const NodeRecord* owner, absl::Time now);

  // Marks `unit` as held: at start, and for an address an agent proves it has, whatever its state.
  // False, and nothing changes, when it is held already or is no unit of this pool.
  bool Hold(const ip::Prefix& unit, const NodeRecord* owner);

  // Releases it: nobody holds it any more, and it is free from `usable_from` on. Calls must come in
  // the order of `usable_from`. False, and nothing changes, when it was not held.
  bool Release(const ip::Prefix& unit, absl::Time usable_from);

  // Does what Release() does, for a unit that is free here: at start, when a stored release is
  // still in cooldown. False when it is held, and nothing changes, or quarantined: then it is in
  // cooldown for what is left of that once the quarantine is lifted.
  bool Cool(const ip::Prefix& unit, absl::Time usable_from);

  // Has all that is free rest until then, as if it had only just been released: Take() hands
  // nothing out, and it counts as in cooldown. What is released meanwhile has its own cooldown
  // besides.
  void RestFree(absl::Time until) { rests_until_ = until; }

  // A quarantined unit is not handed out until that is lifted, and its cooldown is over; one that
  // is held stays held, and is unusable once it is released. False, and nothing changes, when
  // nothing had to change.
  bool SetQuarantined(const ip::Prefix& unit, bool quarantined);

  // Ends cooldowns that are over at `now`, some thousands in one call; Take() does so too. For
  // counts that are up to date.
  void EndCooldowns(absl::Time now);

  // The first unit that is not free and would be none of a pool like `spec`; nullptr: of no pool at
  // all. nullopt: there is none, and Respecify() may be called.
  std::optional<ip::Prefix> InUseOutside(const PoolSpec* spec) const;
  // Becomes a pool like `spec`, in which every unit is as it was. Ends the program when
  // InUseOutside() names one. A pool that only grows costs next to nothing, another as much as has
  // units in use.
  void Respecify(PoolSpec spec);

  // The unit that `address` belongs to; nullopt when the pool never hands it out.
  std::optional<ip::Prefix> UnitOf(const ip::Address& address) const;
  // Whether `unit` is one of this pool's.
  bool Owns(const ip::Prefix& unit) const;
  // Returns the holder; nullptr when nobody holds it.
  const NodeRecord* OwnerOf(const ip::Address& address) const;

  enum class State { kExcluded, kFree, kHeld, kCooldown, kQuarantined };
  State StateOf(const ip::Address& address) const;
  // When `address`, which is in cooldown, is free again.
  absl::Time UsableFrom(const ip::Address& address) const;

  // All that is not free: how many addresses, and between which two they lie.
  struct InUse {
    uint64_t addresses = 0;
    ip::Address lowest;  // Mean nothing when there are none.
    ip::Address highest;
  };
  InUse Used() const;

  const PoolSpec& spec() const { return spec_; }
  uint64_t unit_size() const { return unit_size_; }
  uint64_t usable() const { return Addresses(last_unit_ - first_unit_); }
  uint64_t held() const { return Addresses(held_); }
  uint64_t cooldown() const { return Addresses(cooldown_count_) + (rests_until_ ? unused() : 0); }
  uint64_t quarantined() const { return Addresses(quarantined_); }  // Quarantined and not held.
  uint64_t free() const { return rests_until_ ? 0 : unused(); }

  // "pool default (10.1.0.0/24): 251 usable, 251 attached, 0 in cooldown, 0 free"
  std::string Describe() const;

 private:
  struct Unit {
    const NodeRecord* owner = nullptr;  // The holder; null: not held.
    bool quarantined = false;
    bool cooldown = false;
    absl::Time usable_from;  // Which entry of the two queues is meant, too.

    bool in_use() const { return owner != nullptr || quarantined || cooldown; }
  };
  using Queue = std::deque<std::pair<uint64_t, absl::Time>>;

  uint64_t Addresses(uint64_t units) const;
  // What is free, whether it rests or not.
  uint64_t unused() const { return usable() - held() - Addresses(cooldown_count_) - quarantined(); }
  uint64_t IndexOf(const ip::Address& address) const;
  ip::Prefix UnitAt(uint64_t index) const;
  void Leave(Unit& unit);
  bool GrowsTo(const AddressPool& next) const;
  void CarryOver(const Queue& from, Queue& to, const AddressPool& former) const;

  PoolSpec spec_;
  int unit_length_;     // The prefix length of a unit.
  uint64_t unit_size_;  // The addresses of a unit; a power of two.
  uint64_t first_unit_;
  uint64_t last_unit_;   // One behind the last.
  uint64_t never_used_;  // Units from here on have not been handed out by Take().
  absl::flat_hash_map<uint64_t, Unit>
      units_;       // What is held, in cooldown, quarantined or was released.
  Queue cooldown_;  // Ordered by time; may name units held again since, as may the next.
  Queue ready_;
  uint64_t held_ = 0;
  uint64_t cooldown_count_ = 0;
  uint64_t quarantined_ = 0;
  std::optional<absl::Time> rests_until_;  // nullopt: what is free does not rest.
};

}  // namespace spoke::ipam
