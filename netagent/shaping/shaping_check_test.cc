#include "netagent/shaping/shaping_check.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

constexpr auto kIn = static_cast<size_t>(TrafficDirection::kIngress);

using units::ByteCount;
using units::ByteRate;

ShapeClass Class(ShapeClassId id, ShapeClassId parent, uint64_t queue) {
  return {.id = id,
          .parent = parent,
          .rate = ByteRate(1000),
          .ceil = ByteRate(2000),
          .burst = ByteCount(2000),
          .queue = ByteCount(queue)};
}

ShapingTables Whole() {
  ShapingTables tables;
  tables.scopes = {{ip::Address::V4(0x08000000), ip::Address::V4(0x08FFFFFF), kInternet}};
  tables.trees[kIn] = {Class(1, 0, 0), Class(2, 1, 5000)};
  tables.flows = {{.host_index = 7, .class_id = 2}};
  return tables;
}

bool IsRefused(const ShapingTables& tables) {
  return absl::IsInvalidArgument(CheckShapingTables(tables));
}

TEST(CheckShapingTables, AcceptsWhatCanBe) {
  EXPECT_TRUE(CheckShapingTables({}).ok());
  EXPECT_TRUE(CheckShapingTables(Whole()).ok());
}

TEST(CheckShapingTables, RefusesATreeThatCannotBe) {
  const auto with = [](std::vector<ShapeClass> tree) {
    ShapingTables tables;
    tables.trees[kIn] = std::move(tree);
    return tables;
  };
  EXPECT_TRUE(IsRefused(with({Class(2, 1, 5000), Class(1, 0, 0)}))) << "the parent comes later";
  EXPECT_TRUE(IsRefused(with({Class(2, 0, 5000), Class(2, 0, 5000)}))) << "twice";
  EXPECT_TRUE(IsRefused(with({Class(2, 0, 0)}))) << "a leaf without a queue";
  EXPECT_TRUE(IsRefused(with({Class(1, 0, 10), Class(2, 1, 10)}))) << "a parent with a queue";
  EXPECT_TRUE(IsRefused(with({Class(0, 0, 10)})));
  ShapeClass odd = Class(1, 0, 10);
  odd.rate = {};
  EXPECT_TRUE(IsRefused(with({odd})));
  odd.rate = odd.ceil + ByteRate(1);
  EXPECT_TRUE(IsRefused(with({odd})));
  EXPECT_TRUE(IsRefused(with({Class(1, 0, uint64_t{1} << 32U)}))) << "the kernel has 32 bits";
  std::vector<ShapeClass> deep;
  for (ShapeClassId id = 1; id <= kMaxTreeDepth; ++id) {
    deep.push_back(Class(id, static_cast<ShapeClassId>(id - 1), id == kMaxTreeDepth ? 10 : 0));
  }
  EXPECT_FALSE(IsRefused(with(deep)));
  deep.back().queue = {};
  deep.push_back(Class(kMaxTreeDepth + 1, kMaxTreeDepth, 10));
  EXPECT_TRUE(IsRefused(with(deep)));
}

TEST(CheckShapingTables, RefusesAFlowOfNothing) {
  ShapingTables tables = Whole();
  tables.flows[0].class_id = 1;
  EXPECT_TRUE(IsRefused(tables)) << "has children";
  tables.flows[0].class_id = 9;
  EXPECT_TRUE(IsRefused(tables));
  tables = Whole();
  tables.flows[0].direction = TrafficDirection::kEgress;
  EXPECT_TRUE(IsRefused(tables)) << "of the other tree";
  tables.flows[0].class_id = 0;
  EXPECT_FALSE(IsRefused(tables)) << "only counted";
  tables.flows[0].bucket = 1;
  EXPECT_TRUE(IsRefused(tables));
  tables.buckets = {{.id = 1, .per_second = 5}};
  EXPECT_FALSE(IsRefused(tables));
  tables.buckets.push_back(tables.buckets.front());
  EXPECT_TRUE(IsRefused(tables));
  tables = Whole();
  tables.flows.push_back(tables.flows.front());
  EXPECT_TRUE(IsRefused(tables)) << "twice";
}

TEST(CheckShapingTables, AWholeLinkIsOfWhatThePodSends) {
  ShapingTables tables = Whole();
  tables.flows.push_back({.host_index = 99, .scope = kWholeLink});
  EXPECT_TRUE(IsRefused(tables));
  tables.flows.back().direction = TrafficDirection::kEgress;
  EXPECT_FALSE(IsRefused(tables));
}

TEST(CheckShapingTables, RefusesNumbersThatNoPacketCanName) {
  ShapingTables tables;
  tables.trees[1] = {
      {.id = kMaxShapeClassId, .rate = ByteRate(1), .ceil = ByteRate(1), .queue = ByteCount(1)}};
  EXPECT_FALSE(IsRefused(tables));
  ++tables.trees[1].front().id;
  EXPECT_TRUE(IsRefused(tables));
}

TEST(CheckShapingTables, RefusesTooMany) {
  ShapingTables tables;
  for (uint32_t i = 0; i <= kMaxShapedFlows; ++i) tables.flows.push_back({.host_index = i + 1});
  EXPECT_TRUE(IsRefused(tables));
  tables.flows.pop_back();
  EXPECT_FALSE(IsRefused(tables));
  for (uint16_t i = 0; i <= kMaxConnectionBuckets; ++i) {
    tables.buckets.push_back({.id = static_cast<uint16_t>(i + 1), .per_second = 1});
  }
  EXPECT_TRUE(IsRefused(tables));
}

TEST(ScopeBlocks, AreTheFewestAndLearnedAddressesWin) {
  ShapingTables tables = Whole();
  tables.scopes.push_back({ip::Address::V4(0x09000001), ip::Address::V4(0x09000002), 16});
  tables.learned = {{ip::Address::V4(0x08080808), ip::Address::V4(0x08080808), 17},
                    {ip::Address::V4(0x09000001), ip::Address::V4(0x09000001), 18}};
  const auto blocks = ScopeBlocks(tables).value();
  std::vector<std::string> text;
  for (const auto& block : blocks) {
    text.push_back(block.prefix.ToString() + " " + std::to_string(block.value));
  }
  EXPECT_THAT(text, ::testing::ElementsAre("8.0.0.0/8 7", "8.8.8.8/32 17", "9.0.0.1/32 18",
                                           "9.0.0.2/32 16"));
}

TEST(ScopeBlocks, RefusesWhatIsNoRange) {
  const auto refused = [](std::vector<ClassRange> scopes, std::vector<ClassRange> learned) {
    ShapingTables tables;
    tables.scopes = std::move(scopes);
    tables.learned = std::move(learned);
    return absl::IsInvalidArgument(ScopeBlocks(tables).status());
  };
  const auto v4 = [](uint32_t number) { return ip::Address::V4(number); };
  EXPECT_TRUE(refused({{v4(2), v4(1), 7}}, {}));
  EXPECT_TRUE(refused({{v4(2), ip::Address::V6(0, 3), 7}}, {}));
  EXPECT_TRUE(refused({{v4(1), v4(5), 7}, {v4(5), v4(9), 16}}, {}));
  EXPECT_TRUE(refused({}, {{v4(1), v4(2), 7}}));
  EXPECT_FALSE(refused({{v4(1), v4(5), 7}, {v4(6), v4(9), 16}}, {{v4(2), v4(2), 16}}));
  std::vector<ClassRange> many;
  for (uint32_t i = 0; i <= kMaxShapedPrefixes; ++i) many.push_back({v4(2 * i), v4(2 * i), 7});
  EXPECT_TRUE(refused(many, {}));
  many.pop_back();
  EXPECT_FALSE(refused(many, {}));
}

}  // namespace
}  // namespace spoke::netagent
