#include "netagent/shaping/shape_tree.h"

#include <algorithm>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/shaping/shaping_plan.h"
#include "tests/support/random_seed.h"

namespace spoke::netagent {
namespace {

constexpr uint64_t kMegabyte = 1'000'000;

ShapeNode Root(uint64_t limit) { return {.name = "root", .limit = limit}; }
ShapeNode Leaf(const std::string& name, uint64_t demand, uint32_t weight = 1, uint64_t limit = 0) {
  return {
      .name = name, .parent = 1, .leaf = true, .limit = limit, .weight = weight, .demand = demand};
}

std::map<std::string, ShapeClass> ByName(const std::vector<ShapeNode>& nodes,
                                         const std::vector<RatedClass>& rated) {
  std::map<std::string, ShapeClass> classes;
  for (size_t i = 0; i < nodes.size(); ++i) classes[nodes[i].name] = rated[i].shape;
  return classes;
}

double Share(const RatedClass& rated, uint64_t of) {
  return static_cast<double>(rated.shape.rate) / static_cast<double>(of);
}

TEST(ShapeTree, ThoseThatWantMoreThanThereIsShareByWeight) {
  const uint64_t all = 100 * kMegabyte;
  const auto rated = RateTree(
      {Root(all), Leaf("a", all, 1), Leaf("b", all, 3), Leaf("small", 10 * kMegabyte)}, {});
  EXPECT_EQ(rated[0].shape.rate, all);
  EXPECT_EQ(rated[0].shape.ceil, all);
  EXPECT_EQ(rated[0].shape.queue, 0U);
  EXPECT_NEAR(Share(rated[1], all), (kAssured - 0.1) / 4, 0.001);
  EXPECT_NEAR(Share(rated[2], all), (kAssured - 0.1) * 3 / 4, 0.001);
  EXPECT_NEAR(Share(rated[3], all), 0.1, 0.001);
  for (const RatedClass& leaf : rated) EXPECT_EQ(leaf.shape.ceil, all) << "they may borrow it all";
}

TEST(ShapeTree, IdleLeavesHaveSomeOfTheirPartAndAQueueForAllOfIt) {
  const uint64_t all = 100 * kMegabyte;
  const auto rated = RateTree({Root(all), Leaf("busy", all), Leaf("idle", 0)}, {});
  EXPECT_NEAR(Share(rated[2], all), kIdlePart / 2, 0.0001);
  EXPECT_EQ(rated[2].expected, all / 2);
  EXPECT_EQ(rated[2].shape.queue, all / 2 / 20) << "50 ms at what it can get";
  EXPECT_GT(Share(rated[1], all), 0.9);
}

TEST(ShapeTree, WhatIdleLeavesHaveGoesByWeight) {
  const uint64_t all = 100 * kMegabyte;
  const auto rated =
      RateTree({Root(all), Leaf("busy", all), Leaf("light", 0), Leaf("heavy", 0, 3)}, {});
  EXPECT_NEAR(Share(rated[2], all), kIdlePart / 5, 0.0001);
  EXPECT_NEAR(Share(rated[3], all), kIdlePart * 3 / 5, 0.0001);
}

// The kernel makes a class wait for what it has sent at the rate it had then.
TEST(ShapeTree, NobodyOwesMoreThanASecond) {
  for (const uint64_t all : {10 * kMegabyte, 130 * kMegabyte, 3000 * kMegabyte}) {
    std::vector<ShapeNode> nodes = {Root(all)};
    for (int i = 0; i < 110; ++i) {
      nodes.push_back(Leaf(fmt::format("{}", i), i % 2 == 0 ? all : 0, i % 7 == 3 ? 2 : 1));
    }
    const auto rated = RateTree(nodes, {});
    for (size_t i = 1; i < nodes.size(); ++i) {
      const ShapeClass& leaf = rated[i].shape;
      const uint32_t longest = std::min(leaf.queue, kOffloadedPacket);
      EXPECT_LE(longest, leaf.rate + leaf.rate / 20) << all << ", leaf " << i;
    }
  }
}

TEST(ShapeTree, QueuesOfLeavesThatShareHoldOffloadedPackets) {
  struct {
    uint64_t each;
    uint32_t queue;
  } const cases[] = {
      {20'000, kMinQueue},
      {1'400'000, 140'000},
      {4 * kMegabyte, kInFlight * kOffloadedPacket},
      {100 * kMegabyte, 5'000'000},
  };
  for (const auto& c : cases) {
    const uint64_t all = 2 * c.each;
    const auto rated = RateTree({Root(all), Leaf("a", all), Leaf("b", all)}, {});
    EXPECT_EQ(rated[1].shape.queue, c.queue) << c.each;
    const auto alone = RateTree({Root(0), Leaf("a", 0, 1, c.each)}, {});
    EXPECT_EQ(alone[1].shape.queue, std::max<uint64_t>(c.each / 20, kMinQueue)) << c.each;
  }
}

TEST(ShapeTree, AQueueThatIsTooShortIsNotKept) {
  const uint64_t all = 8 * kMegabyte;
  const std::vector<ShapeNode> nodes = {Root(all), Leaf("a", all), Leaf("b", all)};
  auto former = ByName(nodes, RateTree(nodes, {}));
  former["a"].queue = kInFlight * kOffloadedPacket * 9 / 10;
  former["b"].queue = kInFlight * kOffloadedPacket * 11 / 10;
  const auto rated = RateTree(nodes, former);
  EXPECT_EQ(rated[1].shape.queue, kInFlight * kOffloadedPacket);
  EXPECT_EQ(rated[2].shape.queue, former["b"].queue) << "near enough";
}

TEST(ShapeTree, ALevelThatHasMovedIsFollowed) {
  const uint64_t all = 100 * kMegabyte;
  const std::vector<ShapeNode> before = {Root(all), Leaf("a", all), Leaf("b", all),
                                         Leaf("small", 20 * kMegabyte)};
  std::vector<ShapeNode> after = before;
  after[3].demand = 10 * kMegabyte;
  const auto rated = RateTree(after, ByName(before, RateTree(before, {})));
  EXPECT_NEAR(Share(rated[1], all), (kAssured - 0.1) / 2, 0.001);
  EXPECT_EQ(rated[1].shape.rate, rated[2].shape.rate);
}

TEST(ShapeTree, WhereAllFitsNobodyShares) {
  const auto rated = RateTree(
      {Root(100 * kMegabyte), Leaf("a", 0, 1, 60 * kMegabyte), Leaf("b", 0, 1, 40 * kMegabyte)},
      {});
  EXPECT_EQ(rated[1].shape.rate, 60 * kMegabyte);
  EXPECT_EQ(rated[1].shape.ceil, 60 * kMegabyte);
  EXPECT_EQ(rated[2].shape.rate, 40 * kMegabyte);
}

TEST(ShapeTree, WhatIsNotLimitedHoldsAllThatIsBelow) {
  const auto rated =
      RateTree({Root(0), Leaf("a", 0, 1, kMaxLimit), Leaf("b", 0, 1, kMegabyte)}, {});
  EXPECT_EQ(rated[0].shape.rate, kMaxLimit + kMegabyte);
  EXPECT_EQ(rated[1].shape.rate, kMaxLimit);
  EXPECT_EQ(RateTree({Root(0), Leaf("b", 0, 1, kMegabyte)}, {})[0].shape.ceil, kUnlimitedRate);
}

TEST(ShapeTree, InnerClassesShareWhatTheirLeavesWant) {
  const uint64_t all = 100 * kMegabyte;
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
    uint64_t limit;
    uint32_t burst;
    uint32_t queue;
  } const cases[] = {
      {kMinLimit, 16U << 10U, kMinQueue},
      {131'000, 16U << 10U, 6550},
      {100 * kMegabyte, 100'000, 5'000'000},
      {kUnlimitedRate, 12'500'000, kMaxQueue},
  };
  for (const auto& c : cases) {
    const auto rated = RateTree({Root(0), Leaf("a", 0, 1, c.limit)}, {});
    EXPECT_EQ(rated[1].shape.burst, c.burst) << c.limit;
    EXPECT_EQ(rated[1].shape.queue, c.queue) << c.limit;
  }
}

TEST(ShapeTree, QuantaGoByWeightWithinBounds) {
  const auto rated =
      RateTree({Root(kMegabyte), Leaf("a", 0, 2), Leaf("b", 0, 5), Leaf("c", 0, 100)}, {});
  EXPECT_EQ(rated[1].shape.quantum, kMinQuantum);
  EXPECT_EQ(rated[2].shape.quantum, kMinQuantum * 5 / 2);
  EXPECT_EQ(rated[3].shape.quantum, kMinQuantum * kMaxQuanta);
}

TEST(ShapeTree, SmallChangesOfDemandChangeNothing) {
  const uint64_t all = 100 * kMegabyte;
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
  const uint64_t all = 100 * kMegabyte;
  const std::vector<ShapeNode> nodes = {Root(all), Leaf("a", all), Leaf("b", all)};
  auto former = ByName(nodes, RateTree(nodes, {}));
  former["a"].rate = former["a"].rate * 9 / 10;
  const auto rated = RateTree(nodes, former);
  EXPECT_EQ(rated[1].shape.rate, rated[2].shape.rate);
}

TEST(ShapeTree, NewLimitHoldsAtOnceHoweverSmallTheChange) {
  const std::vector<ShapeNode> before = {Root(100 * kMegabyte), Leaf("a", 0, 1, 50 * kMegabyte),
                                         Leaf("b", 200 * kMegabyte)};
  std::vector<ShapeNode> after = before;
  after[0].limit = 97 * kMegabyte;
  after[1].limit = 49 * kMegabyte;
  const auto rated = RateTree(after, ByName(before, RateTree(before, {})));
  EXPECT_EQ(rated[0].shape.ceil, 97 * kMegabyte);
  EXPECT_EQ(rated[1].shape.ceil, 49 * kMegabyte);
  EXPECT_EQ(rated[2].shape.ceil, 97 * kMegabyte);
}

// Makes a tree of up to four levels.
std::vector<ShapeNode> RandomTree(testing_support::Random& random) {
  const auto limit = [&]() -> uint64_t {
    return random.OneIn(4) ? kMinLimit : random.Between(kMinLimit, 200 * kMegabyte);
  };
  std::vector<ShapeNode> nodes;
  const auto add_leaf = [&](size_t parent) {
    nodes.push_back({.name = fmt::format("leaf {}", nodes.size()),
                     .parent = parent,
                     .leaf = true,
                     .limit = random.OneIn(2) ? 0 : limit(),
                     .weight = static_cast<uint32_t>(random.Between(1, 100)),
                     .demand = random.OneIn(2) ? 0 : random.Between(0, 300 * kMegabyte)});
  };
  for (uint64_t roots = random.Between(1, 3); roots > 0; --roots) {
    nodes.push_back(
        {.name = fmt::format("root {}", nodes.size()), .limit = random.OneIn(3) ? 0 : limit()});
    const size_t root = nodes.size();
    for (uint64_t teams = random.Between(0, 4); teams > 0; --teams) {
      nodes.push_back(
          {.name = fmt::format("team {}", nodes.size()), .parent = root, .limit = limit()});
      const size_t team = nodes.size();
      for (uint64_t i = random.Between(1, 130); i > 0; --i) add_leaf(team);
    }
    if (nodes[root - 1].limit == 0) continue;
    for (uint64_t i = random.Between(1, 10); i > 0; --i) add_leaf(root);
  }
  return nodes;
}

void CheckLaws(const std::vector<ShapeNode>& nodes, const std::vector<RatedClass>& rated) {
  ASSERT_EQ(rated.size(), nodes.size());
  std::vector<uint64_t> sums(nodes.size(), 0);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const ShapeClass& shape = rated[i].shape;
    ASSERT_GE(shape.rate, 1U);
    ASSERT_LE(shape.rate, shape.ceil);
    ASSERT_GE(rated[i].expected, shape.rate);
    ASSERT_LE(rated[i].expected, shape.ceil);
    ASSERT_GE(shape.quantum, kMinQuantum);
    ASSERT_LE(shape.burst / shape.rate, 128U);
    if (nodes[i].limit > 16'384) {
      ASSERT_LE(shape.ceil, nodes[i].limit);
    }
    if (nodes[i].parent != 0) {
      ASSERT_LE(shape.ceil, rated[nodes[i].parent - 1].shape.ceil);
      sums[nodes[i].parent - 1] += shape.rate;
    }
    if (!nodes[i].leaf) continue;
    ASSERT_GE(shape.queue, kMinQueue);
    ASSERT_LE(shape.queue, std::max<uint64_t>(rated[i].expected / 10, kMinQueue));
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
        node.demand = random.OneIn(3) ? random.Between(0, 300 * kMegabyte)
                                      : node.demand * random.Between(85, 115) / 100;
        if (node.limit != 0) {
          node.limit = std::max(node.limit * random.Between(85, 115) / 100, kMinLimit);
        }
      }
    }
  }
}

}  // namespace
}  // namespace spoke::netagent
