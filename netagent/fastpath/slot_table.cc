#include "netagent/fastpath/slot_table.h"

#include "netagent/bpf/maps.h"

namespace spoke::netagent {

std::vector<ip::Address> AddressesOf(const spoke_slot& pod) {
  std::vector<ip::Address> addresses;
  if (pod.has_v4 != 0) addresses.push_back(FromLayout(pod.v4, true));
  if (pod.has_v6 != 0) addresses.push_back(FromLayout(pod.v6, false));
  return addresses;
}

void SlotTable::Put(uint32_t slot, const spoke_slot& pod) {
  Erase(slot);
  const uint32_t end = slots_.empty() ? 0 : slots_.rbegin()->first + 1;
  for (uint32_t gap = end; gap < slot; ++gap) gaps_.insert(gaps_.end(), gap);
  gaps_.erase(slot);
  slots_.emplace(slot, pod);
  by_id_.insert_or_assign(pod.id, slot);
  if (pod.ended != 0) return;
  for (const ip::Address& address : AddressesOf(pod)) by_address_.emplace(address, slot);
  by_link_.emplace(pod.link, slot);
}

void SlotTable::Erase(uint32_t slot) {
  const auto found = slots_.find(slot);
  if (found == slots_.end()) return;
  const spoke_slot& pod = found->second;
  const auto by_id = by_id_.find(pod.id);
  if (by_id != by_id_.end() && by_id->second == slot) by_id_.erase(by_id);
  for (const ip::Address& address : AddressesOf(pod)) by_address_.erase({address, slot});
  by_link_.erase({pod.link, slot});
  slots_.erase(found);
  gaps_.insert(slot);
  const uint32_t end = slots_.empty() ? 0 : slots_.rbegin()->first + 1;
  gaps_.erase(gaps_.lower_bound(end), gaps_.end());
}

std::optional<uint32_t> SlotTable::SlotOf(uint64_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? std::nullopt : std::optional(found->second);
}

uint32_t SlotTable::FirstFree() const {
  if (!gaps_.empty()) return *gaps_.begin();
  return slots_.empty() ? 0 : slots_.rbegin()->first + 1;
}

bool SlotTable::HasAddress(const ip::Address& address) const {
  const auto found = by_address_.lower_bound({address, 0});
  return found != by_address_.end() && found->first == address;
}

std::vector<uint32_t> SlotTable::SlotsOn(uint32_t link) const {
  std::vector<uint32_t> slots;
  for (auto it = by_link_.lower_bound({link, 0}); it != by_link_.end() && it->first == link; ++it) {
    slots.push_back(it->second);
  }
  return slots;
}

}  // namespace spoke::netagent
