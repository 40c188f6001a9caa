// Whether the free addresses of several pools satisfy several demands at once, each of which may
// draw from some of the pools only; and who draws how many from where. Pure.
//
// Exact, not greedy: whoever could be served from a plentiful pool does not use up the scarce one
// that another depends on. A maximum flow; demands with the same pools count as one, so that
// 7,500 nodes of two kinds cost as much as two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace spoke::ipam {

struct PoolSupply {
  uint64_t free = 0;  // Addresses.
  uint32_t unit = 1;  // The size of the lots handed out: 1, or 16 for /28 blocks.
};

struct PoolDemand {
  std::vector<size_t> pools;  // Any of these, by index; sorted, none twice.
  uint64_t addresses = 0;
};

struct PoolShare {
  size_t pool = 0;
  uint64_t addresses = 0;

  bool operator==(const PoolShare&) const = default;
};

struct PoolDivision {
  // What each demand is served from, in their order. Whole lots, so a little more than was asked
  // when pools with blocks are among those asked for.
  std::vector<std::vector<PoolShare>> by_demand;
  std::vector<uint64_t> by_pool;   // The sum for each pool.
  uint64_t short_by = 0;           // Addresses that no division can find; 0: all are served.
  std::vector<size_t> bottleneck;  // When short: the pools that would have to be larger. Sorted.
};

// Serves as much as can be served. When pools with blocks and pools with single addresses meet,
// everything is counted in lots of the largest unit: then it may call something impossible that
// would just fit, but never the reverse.
PoolDivision DividePools(std::span<const PoolDemand> demands, std::span<const PoolSupply> pools);

}  // namespace spoke::ipam
