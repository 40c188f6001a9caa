// The addresses of a subnet that are taken. Pure; not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ip/prefix.h"

namespace spoke::azure_sim {

// Azure keeps the first four addresses and the last one of every subnet for itself.
class SubnetPool {
 public:
  // Makes a pool. Only the first 65,536 addresses of an IPv6 subnet are ever given out: enough for
  // any test, and a /64 has no bitmap.
  explicit SubnetPool(const ip::Prefix& prefix);

  const ip::Prefix& prefix() const { return prefix_; }
  uint64_t free() const { return free_; }

  // Takes the lowest free address. nullopt: the subnet is full.
  std::optional<ip::Address> TakeLowest();
  // Takes the lowest free block of 16 that is aligned, for a /28. nullopt: there is none.
  std::optional<ip::Address> TakeBlock();

  enum class Taken { kYes, kInUse, kReserved, kOutside };
  // Takes one certain address.
  Taken Take(const ip::Address& address);

  // Gives back what one of the above returned; `count` is 1 or 16.
  void Free(const ip::Address& base, uint64_t count);

 private:
  bool IsUsed(uint64_t offset) const { return (used_[offset / 64] >> (offset % 64) & 1U) != 0; }
  void Mark(uint64_t offset) { used_[offset / 64] |= uint64_t{1} << (offset % 64); }

  ip::Prefix prefix_;
  uint64_t size_;
  uint64_t free_;
  uint64_t lowest_word_ = 0;   // No word before it has a free bit.
  uint64_t lowest_block_ = 0;  // No block before it is wholly free.
  std::vector<uint64_t> used_;
};

}  // namespace spoke::azure_sim
