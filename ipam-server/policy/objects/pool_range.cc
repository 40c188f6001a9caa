#include "ipam-server/policy/objects/pool_range.h"

#include <cstdint>
#include <limits>

#include "lib/ip/prefix.h"

namespace spoke::ipam {
namespace {

ip::Address Before(const ip::Address& address) {
  if (address.is_v4()) return ip::Address::V4(static_cast<uint32_t>(address.low() - 1));
  if (address.low() > 0) return ip::Address::V6(address.high(), address.low() - 1);
  return ip::Address::V6(address.high() - 1, std::numeric_limits<uint64_t>::max());
}

// Returns `address` less `steps`, which do not lead out of the last 64 bits.
ip::Address Back(const ip::Address& address, uint32_t steps) {
  const uint64_t low = address.low() - steps;
  return address.is_v4() ? ip::Address::V4(static_cast<uint32_t>(low))
                         : ip::Address::V6(address.high(), low);
}

}  // namespace

std::optional<PoolRange> UsableRange(const PoolSpec& spec) {
  const ip::Prefix& cidr = spec.cidr;
  if (uint64_t{spec.reserve_first} + spec.reserve_last >= cidr.size()) return std::nullopt;
  PoolRange range{ip::Advance(cidr.base(), spec.reserve_first),
                  Back(cidr.last(), spec.reserve_last)};
  if (spec.block_length == 0) return range;

  const int length = static_cast<int>(spec.block_length);
  const auto first_block = ip::Prefix::Of(range.first, length);
  const auto last_block = ip::Prefix::Of(range.last, length);
  // A block longer than an address or no smaller than the pool is none.
  if (!first_block.ok() || !last_block.ok() || length <= cidr.length()) return std::nullopt;
  if (first_block->base() != range.first) {
    if (first_block->last() == cidr.last()) return std::nullopt;
    range.first = ip::Advance(first_block->last(), 1);
  }
  if (last_block->last() != range.last) {
    if (last_block->base() == cidr.base()) return std::nullopt;
    range.last = Before(last_block->base());
  }
  if (range.last < range.first) return std::nullopt;
  return range;
}

}  // namespace spoke::ipam
