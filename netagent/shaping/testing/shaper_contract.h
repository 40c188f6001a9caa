// The promises of every Shaper, real or fake: a suite to instantiate with a World that makes one.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/shaping/shaper.h"

namespace spoke::netagent {

// A node with pods' links. Begin() is what a new agent does.
class ShaperWorld {
 public:
  virtual ~ShaperWorld() = default;
  // Returns the node's shaper, as a new agent finds it.
  virtual Shaper& Begin() = 0;
  // Returns the index of a link that is there, another one each time.
  virtual uint32_t AddLink() = 0;
  // Takes a link away again.
  virtual void RemoveLink(uint32_t host_index) = 0;
  // Deletes a leaf, as somebody with tc(8) would, or makes it look so.
  virtual void Disturb(TrafficDirection direction, ShapeClassId id) = 0;
};

using MakeShaperWorld = std::unique_ptr<ShaperWorld> (*)();

class ShaperContract : public ::testing::TestWithParam<MakeShaperWorld> {
 protected:
  static constexpr ShapeClassId kTop = 1;

  void SetUp() override {
    world_ = GetParam()();
    ASSERT_NE(world_, nullptr) << "namespaces cannot be made here";
    shaper_ = &world_->Begin();
    one_ = world_->AddLink();
    two_ = world_->AddLink();
  }

  static ShapeClass Inner(ShapeClassId id, ShapeClassId parent) {
    return {.id = id,
            .parent = parent,
            .rate = units::ByteRate(12'500'000),
            .ceil = units::ByteRate(12'500'000),
            .burst = units::ByteCount(125'000),
            .quantum = units::ByteCount(100'000)};
  }
  static ShapeClass Leaf(ShapeClassId id, ShapeClassId parent, uint64_t rate = 1'250'000) {
    ShapeClass leaf = Inner(id, parent);
    leaf.rate = units::ByteRate(rate);
    leaf.queue = units::ByteCount(62'500);
    return leaf;
  }

  // Makes the tables of two pods with the Internet, both ways, and of one with a group.
  ShapingTables Tables() const {
    ShapingTables tables;
    tables.scopes = {{ip::Address::V4(0x08000000), ip::Address::V4(0x08FFFFFF), kInternet},
                     {ip::Address::V6(0x2001'0000'0000'0000, 0),
                      ip::Address::V6(0x2001'FFFF'FFFF'FFFF, ~uint64_t{0}), kInternet}};
    tables.learned = {{ip::Address::V4(0x09000001), ip::Address::V4(0x09000001), kFirstGroup}};
    for (auto& tree : tables.trees) tree = {Inner(kTop, 0), Leaf(0x10, kTop), Leaf(0x11, kTop)};
    for (const TrafficDirection direction : kBothDirections) {
      tables.flows.push_back(
          {.host_index = one_, .scope = kInternet, .direction = direction, .class_id = 0x10});
      tables.flows.push_back(
          {.host_index = two_, .scope = kInternet, .direction = direction, .class_id = 0x11});
    }
    tables.flows.push_back(
        {.host_index = one_, .scope = kFirstGroup, .direction = TrafficDirection::kEgress});
    tables.buckets = {{.id = 1, .per_second = 10}};
    return tables;
  }

  std::vector<std::pair<TrafficDirection, ShapeClassId>> ClassesRead() {
    std::vector<std::pair<TrafficDirection, ShapeClassId>> ids;
    const auto reading = shaper_->Read();
    EXPECT_TRUE(reading.ok()) << reading.status();
    if (!reading.ok()) return ids;
    for (const ShapeClassReading& one : reading->classes) ids.emplace_back(one.direction, one.id);
    return ids;
  }
  size_t FlowsRead() {
    const auto reading = shaper_->Read();
    return reading.ok() ? reading->flows.size() : 0;
  }
  void ExpectApplied(const ShapingTables& tables) {
    const absl::Status status = shaper_->Apply(tables);
    ASSERT_TRUE(status.ok()) << status;
    std::vector<std::pair<TrafficDirection, ShapeClassId>> wanted;
    for (const TrafficDirection direction : kBothDirections) {
      for (const ShapeClass& one : tables.trees.at(static_cast<size_t>(direction))) {
        wanted.emplace_back(direction, one.id);
      }
    }
    EXPECT_THAT(ClassesRead(), ::testing::UnorderedElementsAreArray(wanted));
    EXPECT_EQ(FlowsRead(), tables.flows.size());
    EXPECT_EQ(shaper_->Repair().value(), 0U);
  }

  std::unique_ptr<ShaperWorld> world_;
  Shaper* shaper_ = nullptr;
  uint32_t one_ = 0;
  uint32_t two_ = 0;
};

TEST_P(ShaperContract, NothingIsThereBeforeTheFirstTables) {
  EXPECT_THAT(ClassesRead(), ::testing::IsEmpty());
  EXPECT_EQ(FlowsRead(), 0U);
  EXPECT_EQ(shaper_->Repair().value(), 0U);
  EXPECT_TRUE(shaper_->Remove().ok());
}

TEST_P(ShaperContract, WhatIsAppliedIsRead) {
  ExpectApplied(Tables());
  ExpectApplied(Tables());
  const ShapingReading reading = shaper_->Read().value();
  EXPECT_THAT(
      reading.flows,
      ::testing::Contains(ShapedFlowReading{
          .host_index = one_, .scope = kFirstGroup, .direction = TrafficDirection::kEgress}));
  EXPECT_THAT(reading.classes, ::testing::Contains(ShapeClassReading{
                                   .direction = TrafficDirection::kIngress, .id = 0x11}));
}

TEST_P(ShaperContract, EveryChangeIsReached) {
  ExpectApplied({});
  ExpectApplied(Tables());
  ShapingTables tables = Tables();
  tables.trees[0][1].rate = 2 * tables.trees[0][1].rate;
  tables.trees[0][1].queue = 2 * tables.trees[0][1].queue;
  tables.buckets[0].per_second = 20;
  ExpectApplied(tables);
  // A team comes between the top and a pod.
  tables.trees[0] = {Inner(kTop, 0), Inner(2, kTop), Leaf(0x10, 2), Leaf(0x11, kTop)};
  ExpectApplied(tables);
  // The number of a leaf becomes that of a class with children.
  tables.trees[0] = {Inner(kTop, 0), Inner(0x11, kTop), Leaf(0x10, 0x11), Leaf(0x12, 0)};
  tables.flows[1].class_id = 0x12;
  ExpectApplied(tables);
  tables.flows.resize(2);
  ExpectApplied(tables);
  ExpectApplied({});
  ExpectApplied(Tables());
}

TEST_P(ShaperContract, WhatCannotBeIsRefusedAndChangesNothing) {
  ExpectApplied(Tables());
  const auto expect_refused = [this](const ShapingTables& tables) {
    EXPECT_TRUE(absl::IsInvalidArgument(shaper_->Apply(tables)));
    EXPECT_EQ(ClassesRead().size(), 6U);
    EXPECT_EQ(FlowsRead(), Tables().flows.size());
  };
  ShapingTables tables = Tables();
  std::swap(tables.trees[1].front(), tables.trees[1].back());
  expect_refused(tables);
  tables = Tables();
  tables.trees[0].push_back(tables.trees[0].back());
  expect_refused(tables);
  tables = Tables();
  tables.flows[0].class_id = 0x77;
  expect_refused(tables);
  tables = Tables();
  tables.trees[0].back().queue = {};
  expect_refused(tables);
  tables = Tables();
  for (uint32_t i = 0; i < kMaxShapedPrefixes; ++i) {
    const auto address = ip::Address::V4(0x10000000 + i);
    tables.learned.push_back({address, address, kFirstGroup});
  }
  expect_refused(tables);
}

TEST_P(ShaperContract, AFlowWhoseLinkIsGoneIsPassedOver) {
  ExpectApplied(Tables());
  world_->RemoveLink(two_);
  EXPECT_TRUE(shaper_->Apply(Tables()).ok());
  EXPECT_EQ(shaper_->Repair().value(), 0U);
  ShapingTables tables = Tables();
  tables.flows.push_back(
      {.host_index = 99'999, .direction = TrafficDirection::kEgress, .class_id = 0x10});
  EXPECT_TRUE(shaper_->Apply(tables).ok());
  EXPECT_EQ(shaper_->Repair().value(), 0U);
}

TEST_P(ShaperContract, WhatSomebodyDeletesComesBack) {
  ExpectApplied(Tables());
  world_->Disturb(TrafficDirection::kEgress, 0x11);
  EXPECT_GT(shaper_->Repair().value(), 0U);
  EXPECT_EQ(ClassesRead().size(), 6U);
  EXPECT_EQ(shaper_->Repair().value(), 0U);
}

TEST_P(ShaperContract, AWholeLinkHasAFlowBesideThoseOfItsScopes) {
  ShapingTables tables = Tables();
  tables.trees[1].push_back(Leaf(0x20, 0));
  tables.flows.push_back({.host_index = one_,
                          .scope = kWholeLink,
                          .direction = TrafficDirection::kEgress,
                          .class_id = 0x20});
  ExpectApplied(tables);
  world_->Disturb(TrafficDirection::kEgress, 0x20);
  EXPECT_GT(shaper_->Repair().value(), 0U);
  EXPECT_EQ(ClassesRead().size(), 7U);
  shaper_ = &world_->Begin();
  ExpectApplied(tables);
  // A whole link is shaped alone as well.
  ShapingTables alone;
  alone.trees[1] = {tables.trees[1].back()};
  alone.flows = {tables.flows.back()};
  ExpectApplied(alone);
  alone.flows.back().direction = TrafficDirection::kIngress;
  EXPECT_TRUE(absl::IsInvalidArgument(shaper_->Apply(alone)));
  ExpectApplied(Tables());
}

TEST_P(ShaperContract, TheNextAgentTakesOver) {
  ExpectApplied(Tables());
  shaper_ = &world_->Begin();
  EXPECT_EQ(ClassesRead().size(), 6U);
  EXPECT_EQ(FlowsRead(), Tables().flows.size());
  ExpectApplied(Tables());
  shaper_ = &world_->Begin();
  ExpectApplied({});
}

TEST_P(ShaperContract, RemovedItIsGone) {
  ExpectApplied(Tables());
  ASSERT_TRUE(shaper_->Remove().ok());
  EXPECT_THAT(ClassesRead(), ::testing::IsEmpty());
  EXPECT_EQ(FlowsRead(), 0U);
  ExpectApplied(Tables());
  shaper_ = &world_->Begin();
  ASSERT_TRUE(shaper_->Remove().ok());
  EXPECT_THAT(ClassesRead(), ::testing::IsEmpty());
}

}  // namespace spoke::netagent
