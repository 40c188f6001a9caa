#include "netagent/shaping/shape_tree.h"

#include <algorithm>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/shaping/shaping_plan.h"
#include "tests/support/random_seed.h"

namespace spoke::netagent {
namespace {

using units::ByteCount;
using units::ByteRate;

constexpr ByteRate kMegabyte{1'000'000};
constexpr ByteRate kNone;

ShapeNode Root(ByteRate limit) { return {.name = "root", .limit = limit}; }
ShapeNode Leaf(const std::string& name, ByteRate demand, uint32_t weight = 1,
               ByteRate limit = kNone) {
  return {
      .name = name, .parent = 1, .leaf = true, .limit = limit, .weight = weight, .demand = demand};
}

std::map<std::string, ShapeClass> ByName(const std::vector<ShapeNode>& nodes,
                                         const std::vector<RatedClass>& rated) {
  std::map<std::string, ShapeClass> classes;
  for (size_t i = 0; i < nodes.size(); ++i) classes[nodes[i].name] = rated[i].shape;
  return classes;
}

double Share(const RatedClass& rated, ByteRate of) {
  return static_cast<double>(rated.shape.rate.count()) / static_cast<double>(of.count());
}

TEST(ShapeTree, ThoseThatWantMoreThanThereIsShareByWeight) {
  const ByteRate all = 100 * kMegabyte;
  const auto rated = RateTree(
      {Root(all), Leaf("a", all, 1), Leaf("b", all, 3), Leaf("small", 10 * kMegabyte)}, {});
  EXPECT_EQ(rated[0].shape.rate, all);
  EXPECT_EQ(rated[0].shape.ceil, all);
  EXPECT_EQ(rated[0].shape.queue, ByteCount());
  EXPECT_NEAR(Share(rated[1], all), (kAssured - 0.1) / 4, 0.001);
  EXPECT_NEAR(Share(rated[2], all), (kAssured - 0.1) * 3 / 4, 0.001);
  EXPECT_NEAR(Share(rated[3], all), 0.1, 0.001);
  for (const RatedClass& leaf : rated) EXPECT_EQ(leaf.shape.ceil, all) << "they may borrow it all";
}

TEST(ShapeTree, IdleLeavesHaveSomeOfTheirPartAndAQueueForAllOfIt) {
  const ByteRate all = 100 * kMegabyte;
  const auto rated = RateTree({Root(all), Leaf("busy", all), Leaf("idle", kNone)}, {});
  EXPECT_NEAR(Share(rated[2], all), kIdlePart / 2, 0.0001);
  EXPECT_EQ(rated[2].expected, all / 2);
  EXPECT_EQ(rated[2].shape.queue, ByteCount(all.count() / 2 / 20)) << "50 ms at what it can get";
  EXPECT_GT(Share(rated[1], all), 0.9);
}

TEST(ShapeTree, WhatIdleLeavesHaveGoesByWeight) {
  const ByteRate all = 100 * kMegabyte;
  const auto rated =
      RateTree({Root(all), Leaf("busy", all), Leaf("light", kNone), Leaf("heavy", kNone, 3)}, {});
  EXPECT_NEAR(Share(rated[2], all), kIdlePart / 5, 0.0001);
  EXPECT_NEAR(Share(rated[3], all), kIdlePart * 3 / 5, 0.0001);
}

// The kernel makes a class wait for what it has sent at the rate it had then.
TEST(ShapeTree, NobodyOwesMoreThanASecond) {
  for (const ByteRate all : {10 * kMegabyte, 130 * kMegabyte, 3000 * kMegabyte}) {
    std::vector<ShapeNode> nodes = {Root(all)};
    for (int i = 0; i < 110; ++i) {
      nodes.push_back(Leaf(fmt::format("{}", i), i % 2 == 0 ? all : kNone, i % 7 == 3 ? 2 : 1));
    }
    const auto rated = RateTree(nodes, {});
    for (size_t i = 1; i < nodes.size(); ++i) {
      const ShapeClass& leaf = rated[i].shape;
      const ByteCount longest = std::min(leaf.queue, kOffloadedPacket);
      const ByteRate rate = leaf.rate + leaf.rate / 20;
      EXPECT_LE(longest.count(), rate.count()) << all.count() << ", leaf " << i;
    }
  }
}

TEST(ShapeTree, QueuesOfLeavesThatShareHoldOffloadedPackets) {
  struct {
    ByteRate each;
    ByteCount queue;
  } const cases[] = {
      {ByteRate(20'000), kMinQueue},
      {ByteRate(1'400'000), ByteCount(140'000)},
      {4 * kMegabyte, kInFlight * kOffloadedPacket},
      {100 * kMegabyte, ByteCount(5'000'000)},
  };
  for (const auto& c : cases) {
    const ByteRate all = 2 * c.each;
    const auto rated = RateTree({Root(all), Leaf("a", all), Leaf("b", all)}, {});
    EXPECT_EQ(rated[1].shape.queue, c.queue) << c.each.count();
    const auto alone = RateTree({Root(kNone), Leaf("a", kNone, 1, c.each)}, {});
    EXPECT_EQ(alone[1].shape.queue, std::max(ByteCount(c.each.count() / 20), kMinQueue))
        << c.each.count();
  }
}

TEST(ShapeTree, AQueueThatIsTooShortIsNotKept) {
  const ByteRate all = 8 * kMegabyte;
  const std::vector<ShapeNode> nodes = {Root(all), Leaf("a", all), Leaf("b", all)};
  auto former = ByName(nodes, RateTree(nodes, {}));
  former["a"].queue = 9 * (kInFlight * kOffloadedPacket) / 10;
  former["b"].queue = 11 * (kInFlight * kOffloadedPacket) / 10;
  const auto rated = RateTree(nodes, former);
  EXPECT_EQ(rated[1].shape.queue, kInFlight * kOffloadedPacket);
  EXPECT_EQ(rated[2].shape.queue, former["b"].queue) << "near enough";
}

TEST(ShapeTree, ALevelThatHasMovedIsFollowed) {
  const ByteRate all = 100 * kMegabyte;
  const std::vector<ShapeNode> before = {Root(all), Leaf("a", all), Leaf("b", all),
                                         Leaf("small", 20 * kMegabyte)};
  std::vector<ShapeNode> after = before;
  after[3].demand = 10 * kMegabyte;
  const auto rated = RateTree(after, ByName(before, RateTree(before, {})));
  EXPECT_NEAR(Share(rated[1], all), (kAssured - 0.1) / 2, 0.001);
  EXPECT_EQ(rated[1].shape.rate, rated[2].shape.rate);
}

TEST(ShapeTree, WhereAllFitsNobodyShares) {
  const auto rated = RateTree({Root(100 * kMegabyte), Leaf("a", kNone, 1, 60 * kMegabyte),
                               Leaf("b", kNone, 1, 40 * kMegabyte)},
                              {});
  EXPECT_EQ(rated[1].shape.rate, 60 * kMegabyte);
  EXPECT_EQ(rated[1].shape.ceil, 60 * kMegabyte);
  EXPECT_EQ(rated[2].shape.rate, 40 * kMegabyte);
}

TEST(ShapeTree, WhatIsNotLimitedHoldsAllThatIsBelow) {
  const auto rated =
      RateTree({Root(kNone), Leaf("a", kNone, 1, kMaxLimit), Leaf("b", kNone, 1, kMegabyte)}, {});
  EXPECT_EQ(rated[0].shape.rate, kMaxLimit + kMegabyte);
  EXPECT_EQ(rated[1].shape.rate, kMaxLimit);
  EXPECT_EQ(RateTree({Root(kNone), Leaf("b", kNone, 1, kMegabyte)}, {})[0].shape.ceil,
            kUnlimitedRate);
}

TEST(ShapeTree, InnerClassesShareWhatTheirLeavesWant) {
  const ByteRate all = 100 * kMegabyte;
  std::vector<ShapeNode> nodes = {Root(all)};
  nodes.push_back({.name = "one", .parent = 1, .limit = 80 * kMegabyte});
  nodes.push_back({.name = "other", .parent = 1, .limit = 80 * kMegabyte});
  for (int i = 0; i < 4; ++i) {
    nodes.push_back(Leaf(fmt::format("one/{}", i), all));
    nodes.back().parent = 2;
  }
  nodes.push_back(Leaf("other/0", 5 * kMegabyte));
  nodes.back().parent = 3;
  const auto rated = RateTree(nodes, {});
  EXPECT_EQ(rated[1].shape.rate, 80 * kMegabyte) << "what the other does not want";
  EXPECT_NEAR(Share(rated[2], all), 0.05, 0.001);
  EXPECT_EQ(rated[2].shape.ceil, 80 * kMegabyte);
  EXPECT_NEAR(Share(rated[3], all), 0.8 * kAssured / 4, 0.001);
  EXPECT_EQ(rated[3].shape.ceil, 80 * kMegabyte);
}

TEST(ShapeTree, BurstsAndQueuesGoByTimeWithinBounds) {
  struct {
    ByteRate limit;
    ByteCount burst;
    ByteCount queue;
  } const cases[] = {
      {kMinLimit, ByteCount(16U << 10U), kMinQueue},
      {ByteRate(131'000), ByteCount(16U << 10U), ByteCount(6550)},
      {100 * kMegabyte, ByteCount(100'000), ByteCount(5'000'000)},
      {kUnlimitedRate, ByteCount(12'500'000), kMaxQueue},
  };
  for (const auto& c : cases) {
    const auto rated = RateTree({Root(kNone), Leaf("a", kNone, 1, c.limit)}, {});
    EXPECT_EQ(rated[1].shape.burst, c.burst) << c.limit.count();
    EXPECT_EQ(rated[1].shape.queue, c.queue) << c.limit.count();
  }
}

TEST(ShapeTree, QuantaGoByWeightWithinBounds) {
  const auto rated = RateTree(
      {Root(kMegabyte), Leaf("a", kNone, 2), Leaf("b", kNone, 5), Leaf("c", kNone, 100)}, {});
  EXPECT_EQ(rated[1].shape.quantum, kMinQuantum);
  EXPECT_EQ(rated[2].shape.quantum, 5 * kMinQuantum / 2);
  EXPECT_EQ(rated[3].shape.quantum, kMaxQuanta * kMinQuantum);
}

TEST(ShapeTree, SmallChangesOfDemandChangeNothing) {
  const ByteRate all = 100 * kMegabyte;
  const std::vector<ShapeNode> before = {Root(all), Leaf("a", all), Leaf("b", all),
                                         Leaf("small", 10 * kMegabyte)};
  std::vector<ShapeNode> after = before;
  after[3].demand = 9 * kMegabyte;
  const auto former = RateTree(before, {});
  const auto rated = RateTree(after, ByName(before, former));
  for (size_t i = 0; i < rated.size(); ++i) EXPECT_EQ(rated[i].shape, former[i].shape) << i;
  after[3].demand = kMegabyte;
  EXPECT_LT(RateTree(after, ByName(before, former))[3].shape.rate, 4 * kMegabyte);
}

TEST(ShapeTree, ThoseThatShareByWeightNeverKeepUnlikeRates) {
  const ByteRate all = 100 * kMegabyte;
  const std::vector<ShapeNode> nodes = {Root(all), Leaf("a", all), Leaf("b", all)};
  auto former = ByName(nodes, RateTree(nodes, {}));
  former["a"].rate = 9 * former["a"].rate / 10;
  const auto rated = RateTree(nodes, former);
  EXPECT_EQ(rated[1].shape.rate, rated[2].shape.rate);
}

TEST(ShapeTree, NewLimitHoldsAtOnceHoweverSmallTheChange) {
  const std::vector<ShapeNode> before = {Root(100 * kMegabyte), Leaf("a", kNone, 1, 50 * kMegabyte),
                                         Leaf("b", 200 * kMegabyte)};
  std::vector<ShapeNode> after = before;
  after[0].limit = 97 * kMegabyte;
  after[1].limit = 49 * kMegabyte;
  const auto rated = RateTree(after, ByName(before, RateTree(before, {})));
  EXPECT_EQ(rated[0].shape.ceil, 97 * kMegabyte);
  EXPECT_EQ(rated[1].shape.ceil, 49 * kMegabyte);
  EXPECT_EQ(rated[2].shape.ceil, 97 * kMegabyte);
}

ByteRate AnyDemand(testing_support::Random& random) {
  return ByteRate(random.Between(0, (300 * kMegabyte).count()));
}

// Makes a tree of up to four levels.
std::vector<ShapeNode> RandomTree(testing_support::Random& random) {
  const auto limit = [&] {
    const uint64_t most = (200 * kMegabyte).count();
    return random.OneIn(4) ? kMinLimit : ByteRate(random.Between(kMinLimit.count(), most));
  };
  std::vector<ShapeNode> nodes;
  const auto add_leaf = [&](size_t parent) {
    nodes.push_back({.name = fmt::format("leaf {}", nodes.size()),
                     .parent = parent,
                     .leaf = true,
                     .limit = random.OneIn(2) ? kNone : limit(),
                     .weight = static_cast<uint32_t>(random.Between(1, 100)),
                     .demand = random.OneIn(2) ? kNone : AnyDemand(random)});
  };
  for (uint64_t roots = random.Between(1, 3); roots > 0; --roots) {
    nodes.push_back(
        {.name = fmt::format("root {}", nodes.size()), .limit = random.OneIn(3) ? kNone : limit()});
    const size_t root = nodes.size();
    for (uint64_t teams = random.Between(0, 4); teams > 0; --teams) {
      nodes.push_back(
          {.name = fmt::format("team {}", nodes.size()), .parent = root, .limit = limit()});
      const size_t team = nodes.size();
      for (uint64_t i = random.Between(1, 130); i > 0; --i) add_leaf(team);
    }
    if (nodes[root - 1].limit.is_zero()) continue;
    for (uint64_t i = random.Between(1, 10); i > 0; --i) add_leaf(root);
  }
  return nodes;
}

void CheckLaws(const std::vector<ShapeNode>& nodes, const std::vector<RatedClass>& rated) {
  ASSERT_EQ(rated.size(), nodes.size());
  std::vector<ByteRate> sums(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    const ShapeClass& shape = rated[i].shape;
    ASSERT_GE(shape.rate, ByteRate(1));
    ASSERT_LE(shape.rate, shape.ceil);
    ASSERT_GE(rated[i].expected, shape.rate);
    ASSERT_LE(rated[i].expected, shape.ceil);
    ASSERT_GE(shape.quantum, kMinQuantum);
    ASSERT_LE(shape.burst.count() / shape.rate.count(), 128U);
    if (nodes[i].limit > ByteRate(16'384)) {
      ASSERT_LE(shape.ceil, nodes[i].limit);
    }
    if (nodes[i].parent != 0) {
      ASSERT_LE(shape.ceil, rated[nodes[i].parent - 1].shape.ceil);
      sums[nodes[i].parent - 1] += shape.rate;
    }
    if (!nodes[i].leaf) continue;
    ASSERT_GE(shape.queue, kMinQueue);
    ASSERT_LE(shape.queue, std::max(ByteCount(rated[i].expected.count() / 10), kMinQueue));
  }
  for (size_t i = 0; i < nodes.size(); ++i) ASSERT_LE(sums[i], rated[i].shape.rate);
}

TEST(ShapeTree, LawsHoldWhateverTheTreeAndWhateverWasBefore) {
  testing_support::Random random;
  for (int round = 0; round < 300; ++round) {
    std::vector<ShapeNode> nodes = RandomTree(random);
    std::map<std::string, ShapeClass> former;
    for (int step = 0; step < 5; ++step) {
      const auto rated = RateTree(nodes, former);
      ASSERT_NO_FATAL_FAILURE(CheckLaws(nodes, rated));
      former = ByName(nodes, rated);
      for (ShapeNode& node : nodes) {
        // Demands are near what they were, or all anew.
        node.demand =
            random.OneIn(3) ? AnyDemand(random) : random.Between(85, 115) * node.demand / 100;
        if (!node.limit.is_zero()) {
          node.limit = std::max(random.Between(85, 115) * node.limit / 100, kMinLimit);
        }
      }
    }
  }
}

}  // namespace
}  // namespace spoke::netagent
