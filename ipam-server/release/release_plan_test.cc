#include "ipam-server/release/release_plan.h"

#include <algorithm>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/pools/pool_plan.h"
#include "tests/support/random_seed.h"

namespace spoke::ipam {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);
const ReleasePolicy kPolicy{.idle_time = absl::Minutes(5),
                            .jitter_spread = absl::Minutes(2),
                            .hysteresis = 2,
                            .denial_backoff = absl::Minutes(5)};

ReleaseUnit Available(int minutes) {
  return {.available = true, .available_since = kNow - absl::Minutes(minutes)};
}
ReleaseUnit Busy() { return {.available = false}; }

TEST(PlanRelease, GivesBackTheSurplusLongestAvailableFirst) {
  EXPECT_THAT(
      PlanRelease(kPolicy,
                  {.units = {Available(6), Available(9), Busy(), Available(7)}, .target = 2}, kNow),
      ElementsAre(1, 3));
}

TEST(PlanRelease, KeepsWhatIsUsedOrWasUsedALittleWhileAgo) {
  EXPECT_THAT(
      PlanRelease(kPolicy, {.units = {Busy(), Busy(), Available(4), Available(5)}, .target = 0},
                  kNow),
      ElementsAre(3));
}

TEST(PlanRelease, KeepsASurplusThatIsNotWorthACall) {
  EXPECT_THAT(PlanRelease(kPolicy,
                          {.units = {Available(9), Available(9), Available(9)}, .target = 2}, kNow),
              IsEmpty());
  EXPECT_THAT(PlanRelease(kPolicy,
                          {.units = {Available(9), Available(9), Available(9)}, .target = 1}, kNow),
              ElementsAre(0, 1));
}

TEST(PlanRelease, WhatIsScarceGoesAtOnceAsFarAsItIsWantedAndNotNeeded) {
  NodeHoldings node{.units = {Available(2), Available(1), Available(3), Busy()}, .target = 2};
  for (ReleaseUnit& unit : node.units) unit.scarce = true;
  EXPECT_THAT(PlanRelease(kPolicy, node, kNow), IsEmpty());
  node.wanted = 1;
  EXPECT_THAT(PlanRelease(kPolicy, node, kNow), ElementsAre(2));
  node.wanted = 9;
  EXPECT_THAT(PlanRelease(kPolicy, node, kNow), ElementsAre(2, 0));
  node.target = 3;
  EXPECT_THAT(PlanRelease(kPolicy, node, kNow), ElementsAre(2)) << "hysteresis counts no more";
  node.units[2].denied_until = kNow + absl::Seconds(1);
  EXPECT_THAT(PlanRelease(kPolicy, node, kNow), ElementsAre(0));
  node.units[0].scarce = node.units[1].scarce = false;
  EXPECT_THAT(PlanRelease(kPolicy, node, kNow), IsEmpty());
}

TEST(PlanRelease, WhatHasBeenIdleForLongCountsTowardsWhatIsWanted) {
  NodeHoldings node{.units = {Available(9), Available(8), Available(1)}, .wanted = 2};
  node.units[2].scarce = true;
  EXPECT_THAT(PlanRelease(kPolicy, node, kNow), ElementsAre(0, 1));
  node.wanted = 3;
  EXPECT_THAT(PlanRelease(kPolicy, node, kNow), ElementsAre(0, 1, 2));
}

TEST(PlanRelease, JitterDelaysANodeByItsShareOfTheSpread) {
  const NodeHoldings node{.units = {Available(6), Available(6)}, .target = 0, .jitter = 0.75};
  EXPECT_THAT(PlanRelease(kPolicy, node, kNow), IsEmpty());
  EXPECT_THAT(PlanRelease(kPolicy, node, kNow + absl::Seconds(30)), ElementsAre(0, 1));
}

TEST(PlanRelease, ADeniedUnitIsLeftAloneAndTheNextOnesGo) {
  NodeHoldings node{.units = {Available(9), Available(8), Available(7)}, .target = 1};
  node.units[0].denied_until = kNow + absl::Seconds(1);
  EXPECT_THAT(PlanRelease(kPolicy, node, kNow), ElementsAre(1, 2));
  EXPECT_THAT(PlanRelease(kPolicy, node, kNow + absl::Seconds(1)), ElementsAre(0, 1));
}

TEST(PlanRelease, ABlockGoesWholeOrNotAtAll) {
  ReleaseUnit block = Available(30);
  block.size = 16;
  EXPECT_THAT(
      PlanRelease(kPolicy, {.units = {block, Busy(), Available(9), Available(8)}, .target = 4},
                  kNow),
      ElementsAre(2, 3))
      << "the block would leave one address too few; what is smaller may go";
  EXPECT_THAT(
      PlanRelease(kPolicy, {.units = {block, Busy(), Available(9), Available(8)}, .target = 2},
                  kNow),
      ElementsAre(0, 2));
}

TEST(PlanRelease, ADrainingNodeGivesUpAllThatIsAvailableAtOnce) {
  EXPECT_THAT(
      PlanRelease(kPolicy,
                  {.units = {Available(0), Busy(), Available(1)}, .target = 16, .draining = true},
                  kNow),
      ElementsAre(2, 0));
  NodeHoldings denied{.units = {Available(0)}, .draining = true};
  denied.units[0].denied_until = kNow + absl::Seconds(1);
  EXPECT_THAT(PlanRelease(kPolicy, denied, kNow), IsEmpty());
}

struct World {
  TargetPolicy target_policy;
  ReleasePolicy policy;
  NodeHoldings node;
  uint32_t unit_size = 1;
};

uint32_t HeldBy(const NodeHoldings& node) {
  uint32_t held = 0;
  for (const ReleaseUnit& unit : node.units) held += unit.size;
  return held;
}

World RandomWorld(testing_support::Random& random) {
  World world;
  world.unit_size = random.OneIn(3) ? 16 : 1;
  world.target_policy.min = static_cast<uint32_t>(random.Between(0, 16));
  world.target_policy.batch = static_cast<uint32_t>(random.Between(1, 16));
  world.policy.hysteresis = static_cast<uint32_t>(random.Between(0, 20));
  world.node.jitter = random.Fraction();
  world.node.draining = random.OneIn(8);
  const bool mixed = random.OneIn(4);
  const uint64_t count = random.Between(0, 30);
  uint32_t used = 0;
  for (uint64_t i = 0; i < count; ++i) {
    ReleaseUnit unit{.size = mixed && random.OneIn(2) ? 16 : world.unit_size};
    unit.available = !random.OneIn(3);
    unit.available_since = kNow - absl::Seconds(random.Between(0, 900));
    if (random.OneIn(5)) {
      unit.denied_until = kNow + absl::Seconds(static_cast<int64_t>(random.Between(0, 600)) - 300);
    }
    used += unit.available ? 0 : static_cast<uint32_t>(random.Between(1, unit.size));
    world.node.units.push_back(unit);
  }
  world.node.target = TargetAddresses(world.target_policy, used);
  return world;
}

NodeHoldings After(const NodeHoldings& node, const std::vector<size_t>& released) {
  NodeHoldings after = node;
  after.units.clear();
  const std::set<size_t> gone(released.begin(), released.end());
  for (size_t i = 0; i < node.units.size(); ++i) {
    if (!gone.contains(i)) after.units.push_back(node.units[i]);
  }
  return after;
}

TEST(PlanRelease, ObeysItsLawsForAnyNode) {
  testing_support::Random random;
  size_t released_in_all = 0;
  for (int i = 0; i < testing_support::kRandomCases; ++i) {
    const World world = RandomWorld(random);
    const NodeHoldings& node = world.node;
    const std::vector<size_t> plan = PlanRelease(world.policy, node, kNow);
    released_in_all += plan.size();
    ASSERT_EQ(std::set<size_t>(plan.begin(), plan.end()).size(), plan.size()) << "none twice";
    for (size_t j = 0; j < plan.size(); ++j) {
      ASSERT_TRUE(node.units[plan[j]].available);
      ASSERT_LE(node.units[plan[j]].denied_until, kNow);
      ASSERT_TRUE(j == 0 ||
                  node.units[plan[j - 1]].available_since <= node.units[plan[j]].available_since);
    }
    const NodeHoldings after = After(node, plan);
    if (!node.draining && !plan.empty()) ASSERT_GE(HeldBy(after), node.target) << "no flapping";
    ASSERT_TRUE(PlanRelease(world.policy, after, kNow).empty()) << "one step";
  }
  EXPECT_GT(released_in_all, 100'000U) << "the cases must reach what they are to show";
}

TEST(PlanRelease, WhatMayGoStillMayGoWhenAvailableForLonger) {
  testing_support::Random random;
  for (int i = 0; i < testing_support::kRandomCases; ++i) {
    World world = RandomWorld(random);
    const std::vector<size_t> plan = PlanRelease(world.policy, world.node, kNow);
    if (plan.empty()) continue;
    const size_t chosen = plan[random.Between(0, plan.size() - 1)];
    world.node.units[chosen].available_since -= absl::Seconds(random.Between(1, 600));
    const std::vector<size_t> sooner = PlanRelease(world.policy, world.node, kNow);
    ASSERT_NE(std::find(sooner.begin(), sooner.end(), chosen), sooner.end());

    // A later look without denials lets the same ones go, and perhaps more.
    for (ReleaseUnit& unit : world.node.units) unit.denied_until = absl::InfinitePast();
    const std::vector<size_t> now = PlanRelease(world.policy, world.node, kNow);
    const std::vector<size_t> later =
        PlanRelease(world.policy, world.node, kNow + absl::Seconds(random.Between(1, 600)));
    ASSERT_LE(now.size(), later.size());
    ASSERT_TRUE(std::equal(now.begin(), now.end(), later.begin()));
  }
}

}  // namespace
}  // namespace spoke::ipam
