// Which addresses of a pool may be handed out. Pure.
#pragma once

#include <optional>

#include "ipam-server/pools/address_pool.h"
#include "lib/ip/address.h"

namespace spoke::ipam {

// Both ends included. Everything between belongs to it.
struct PoolRange {
  ip::Address first;
  ip::Address last;

  bool Contains(const ip::Address& address) const { return first <= address && address <= last; }
  bool operator==(const PoolRange&) const = default;
};

// The block without what is reserved at its ends; of a pool that hands out blocks, only whole ones,
// so that it begins and ends with one. nullopt: nothing is left.
std::optional<PoolRange> UsableRange(const PoolSpec& spec);

}  // namespace spoke::ipam
