// The pods in the slots of the fast path's maps, found by what they are asked for: an ADD costs the
// same however many pods there are. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "lib/ip/address.h"
#include "netagent/fastpath/layout.h"

namespace spoke::netagent {

// Returns the pod's addresses, that of IPv4 first.
std::vector<ip::Address> AddressesOf(const spoke_slot& pod);

// Not thread-safe. A pod is there until it is erased, whether it has ended or not. Pods that have
// not ended may share an address or a link: an agent that was killed leaves such.
class SlotTable {
 public:
  const std::map<uint32_t, spoke_slot>& all() const { return slots_; }
  // The pod in a slot that is in use.
  const spoke_slot& at(uint32_t slot) const { return slots_.at(slot); }

  // Puts the pod into the slot, in place of the one that is there.
  void Put(uint32_t slot, const spoke_slot& pod);
  // Makes the slot free.
  void Erase(uint32_t slot);
  void Clear() { *this = SlotTable(); }

  // Returns the slot of the pod with this id.
  std::optional<uint32_t> SlotOf(uint64_t id) const;
  // Returns the first free slot.
  uint32_t FirstFree() const;
  // Whether a pod that has not ended has the address.
  bool HasAddress(const ip::Address& address) const;
  // Returns the slots of the pods behind this link that have not ended, in order.
  std::vector<uint32_t> SlotsOn(uint32_t link) const;

 private:
  std::map<uint32_t, spoke_slot> slots_;
  std::map<uint64_t, uint32_t> by_id_;
  std::set<uint32_t> gaps_;  // The free slots in front of the last one in use.
  // Those of pods that have not ended.
  std::set<std::pair<ip::Address, uint32_t>> by_address_;
  std::set<std::pair<uint32_t, uint32_t>> by_link_;
};

}  // namespace spoke::netagent
