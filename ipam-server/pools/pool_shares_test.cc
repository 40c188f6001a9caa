#include "ipam-server/pools/pool_shares.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/random_seed.h"

namespace spoke::ipam {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(DividePools, MovesWhoCanMoveOffTheScarcePool) {
  const std::vector<PoolDemand> demands{{{0, 1}, 10}, {{0}, 10}};
  const std::vector<PoolSupply> pools{{10}, {10}};
  const PoolDivision division = DividePools(demands, pools);
  EXPECT_EQ(division.short_by, 0U);
  EXPECT_THAT(division.by_demand[0], ElementsAre(PoolShare{1, 10}));
  EXPECT_THAT(division.by_demand[1], ElementsAre(PoolShare{0, 10}));
  EXPECT_THAT(division.by_pool, ElementsAre(10, 10));
}

TEST(DividePools, NamesThePoolsThatAreTooSmall) {
  const std::vector<PoolDemand> demands{{{0, 1}, 10}, {{0}, 13}, {{2}, 5}};
  const std::vector<PoolSupply> pools{{10}, {10}, {100}};
  const PoolDivision division = DividePools(demands, pools);
  EXPECT_EQ(division.short_by, 3U);
  EXPECT_THAT(division.bottleneck, ElementsAre(0));
}

TEST(DividePools, CountsBlocksWhole) {
  const std::vector<PoolDemand> demands{{{0}, 27}, {{0}, 1}};
  const std::vector<PoolSupply> enough{{48, 16}};
  const std::vector<PoolSupply> scarce{{47, 16}};
  EXPECT_EQ(DividePools(demands, enough).short_by, 0U);
  EXPECT_EQ(DividePools(demands, scarce).short_by, 16U);
}

TEST(DividePools, NoPoolsAndNoDemandsAreNoTrouble) {
  EXPECT_EQ(DividePools({}, {}).short_by, 0U);
  const std::vector<PoolDemand> homeless{{{}, 3}};
  EXPECT_EQ(DividePools(homeless, {}).short_by, 3U);
  EXPECT_THAT(DividePools(homeless, {}).bottleneck, IsEmpty());
}

// Hall's theorem: what cannot be served is the most that any set of demands asks beyond all that
// its pools hold. With few demands every set can be tried.
uint64_t ShortageByHall(const std::vector<PoolDemand>& demands,
                        const std::vector<PoolSupply>& pools, uint64_t lot) {
  uint64_t worst = 0;
  for (uint32_t set = 1; set < (1U << demands.size()); ++set) {
    uint64_t wanted = 0;
    uint32_t reached = 0;
    for (size_t i = 0; i < demands.size(); ++i) {
      if ((set >> i & 1U) == 0) continue;
      wanted += (demands[i].addresses + lot - 1) / lot;
      for (const size_t pool : demands[i].pools) reached |= 1U << pool;
    }
    uint64_t there = 0;
    for (size_t pool = 0; pool < pools.size(); ++pool) {
      if ((reached >> pool & 1U) != 0) there += pools[pool].free / lot;
    }
    if (wanted > there) worst = std::max(worst, wanted - there);
  }
  return worst * lot;
}

TEST(DividePools, FindsADivisionExactlyWhenThereIsOne) {
  testing_support::Random random;
  int impossible = 0;
  for (int i = 0; i < testing_support::kRandomCases; ++i) {
    const uint32_t unit = random.OneIn(3) ? 16 : 1;
    const bool mixed = random.OneIn(4);
    std::vector<PoolSupply> pools(random.Between(1, 4));
    for (PoolSupply& pool : pools) {
      pool = {.free = random.Between(0, 8) * unit + random.Between(0, unit - 1),
              .unit = mixed && random.OneIn(2) ? 1 : unit};
    }
    std::vector<PoolDemand> demands(random.Between(0, 5));
    uint64_t lot = 1;
    for (PoolDemand& demand : demands) {
      for (size_t pool = 0; pool < pools.size(); ++pool) {
        if (random.OneIn(2)) demand.pools.push_back(pool);
      }
      demand.addresses = random.Between(0, 6 * unit);
      if (demand.addresses == 0) continue;
      for (const size_t pool : demand.pools) lot = std::max<uint64_t>(lot, pools[pool].unit);
    }
    const PoolDivision division = DividePools(demands, pools);
    ASSERT_EQ(division.short_by, ShortageByHall(demands, pools, lot));
    impossible += division.short_by > 0 ? 1 : 0;

    uint64_t unserved = 0;
    std::vector<uint64_t> taken(pools.size(), 0);
    for (size_t d = 0; d < demands.size(); ++d) {
      uint64_t got = 0;
      for (const PoolShare& share : division.by_demand[d]) {
        ASSERT_TRUE(std::find(demands[d].pools.begin(), demands[d].pools.end(), share.pool) !=
                    demands[d].pools.end());
        ASSERT_EQ(share.addresses % pools[share.pool].unit, 0U) << "whole lots";
        taken[share.pool] += share.addresses;
        got += share.addresses;
      }
      const uint64_t wanted = (demands[d].addresses + lot - 1) / lot * lot;
      ASSERT_LE(got, wanted);
      unserved += wanted - got;
    }
    ASSERT_EQ(unserved, division.short_by);
    ASSERT_EQ(taken, division.by_pool);
    for (size_t p = 0; p < pools.size(); ++p) ASSERT_LE(taken[p], pools[p].free);
  }
  EXPECT_GT(impossible, 10'000);
  EXPECT_LT(impossible, 90'000);
}

}  // namespace
}  // namespace spoke::ipam
