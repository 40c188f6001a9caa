#include "netagent/shaping/class_changes.h"

#include <algorithm>
#include <map>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ShapeClass Inner(ShapeClassId id, ShapeClassId parent, uint64_t rate = 1000) {
  return {.id = id,
          .parent = parent,
          .rate = units::ByteRate(rate),
          .ceil = units::ByteRate(rate),
          .burst = units::ByteCount(1),
          .quantum = units::ByteCount(1)};
}

ShapeClass Leaf(ShapeClassId id, ShapeClassId parent, uint64_t rate = 1000) {
  ShapeClass leaf = Inner(id, parent, rate);
  leaf.queue = units::ByteCount(5000);
  return leaf;
}

// A stand-in for the kernel, which refuses what the kernel would refuse.
class Tree {
 public:
  explicit Tree(const std::vector<ShapeClass>& classes) {
    for (const ShapeClass& one : classes) classes_[one.id] = one;
  }
  void Set(const ClassChange& change) {
    const ShapeClass& one = change.wanted;
    if (one.parent != 0) {
      ASSERT_EQ(classes_.count(one.parent), 1U) << one.id;
      ASSERT_TRUE(classes_.at(one.parent).queue.is_zero()) << one.id;
    }
    const bool is_new = classes_.count(one.id) == 0;
    ASSERT_TRUE(is_new || classes_.at(one.id).parent == one.parent) << one.id;
    ASSERT_TRUE(!is_new || change.set_class) << one.id;
    const units::ByteCount queue = is_new ? units::ByteCount() : classes_.at(one.id).queue;
    if (change.set_class) classes_[one.id] = one;
    classes_[one.id].queue = change.set_queue ? one.queue : queue;
  }
  void Remove(ShapeClassId id) {
    ASSERT_EQ(classes_.erase(id), 1U);
    for (const auto& [other, one] : classes_) ASSERT_NE(one.parent, id) << other;
  }
  std::vector<ShapeClass> Classes() const {
    std::vector<ShapeClass> all;
    for (const auto& [id, one] : classes_) all.push_back(one);
    return all;
  }

 private:
  std::map<ShapeClassId, ShapeClass> classes_;
};

std::vector<ShapeClass> Sorted(std::vector<ShapeClass> classes) {
  std::sort(classes.begin(), classes.end(),
            [](const ShapeClass& a, const ShapeClass& b) { return a.id < b.id; });
  return classes;
}

void ExpectReaches(const std::vector<ShapeClass>& there, const std::vector<ShapeClass>& wanted) {
  const ClassChanges changes = PlanClassChanges(there, wanted);
  Tree tree(there);
  for (const ClassChange& change : changes.first) tree.Set(change);
  for (const ShapeClassId id : changes.removed) tree.Remove(id);
  for (const ClassChange& change : changes.again) tree.Set(change);
  EXPECT_EQ(tree.Classes(), Sorted(wanted));
  EXPECT_EQ(PlanClassChanges(tree.Classes(), wanted).differences, 0U);
}

TEST(PlanClassChanges, TouchesNothingThatIsRight) {
  const std::vector<ShapeClass> tree = {Inner(1, 0), Leaf(2, 1), Leaf(3, 1)};
  const ClassChanges changes = PlanClassChanges(tree, tree);
  EXPECT_THAT(changes.first, IsEmpty());
  EXPECT_THAT(changes.removed, IsEmpty());
  EXPECT_THAT(changes.again, IsEmpty());
  EXPECT_EQ(changes.differences, 0U);
}

TEST(PlanClassChanges, ARateIsChangedInPlace) {
  const ClassChanges changes = PlanClassChanges({Leaf(2, 0)}, {Leaf(2, 0, 500)});
  EXPECT_THAT(changes.first, ElementsAre(ClassChange{Leaf(2, 0, 500), true, false}));
  EXPECT_THAT(changes.removed, IsEmpty());
  EXPECT_EQ(changes.differences, 1U);
}

TEST(PlanClassChanges, AQueueThatSomebodyDeletedComesBackAlone) {
  ShapeClass bare = Leaf(2, 0);
  bare.queue = {};
  const ClassChanges changes = PlanClassChanges({bare}, {Leaf(2, 0)});
  EXPECT_THAT(changes.first, ElementsAre(ClassChange{Leaf(2, 0), false, true}));
}

TEST(PlanClassChanges, TheQuantumOfAClassWithChildrenDoesNotMatter) {
  ShapeClass inner = Inner(1, 0);
  inner.quantum = units::ByteCount(77);
  EXPECT_EQ(PlanClassChanges({inner, Leaf(2, 1)}, {Inner(1, 0), Leaf(2, 1)}).differences, 0U);
  ShapeClass leaf = Leaf(2, 0);
  leaf.quantum = units::ByteCount(77);
  EXPECT_EQ(PlanClassChanges({leaf}, {Leaf(2, 0)}).differences, 1U);
}

TEST(PlanClassChanges, WhatIsGoneGoesLastAndFromBelow) {
  const ClassChanges changes =
      PlanClassChanges({Inner(1, 0), Inner(2, 1), Leaf(3, 2)}, {Leaf(4, 0)});
  EXPECT_THAT(changes.first, ElementsAre(ClassChange{Leaf(4, 0), true, true}));
  EXPECT_THAT(changes.removed, ElementsAre(3, 2, 1));
  EXPECT_EQ(changes.differences, 5U);
}

TEST(PlanClassChanges, WhatMovesIsRemovedAndMadeAgainWithAllBelow) {
  const std::vector<ShapeClass> there = {Inner(1, 0), Inner(2, 1), Leaf(3, 2), Leaf(9, 1)};
  const ClassChanges changes =
      PlanClassChanges(there, {Inner(1, 0), Inner(2, 0), Leaf(3, 2), Leaf(9, 1)});
  EXPECT_THAT(changes.first, IsEmpty());
  EXPECT_THAT(changes.removed, ElementsAre(3, 2));
  EXPECT_THAT(changes.again, ElementsAre(ClassChange{Inner(2, 0), true, false},
                                         ClassChange{Leaf(3, 2), true, true}));
}

TEST(PlanClassChanges, ALeafNeverTurnsIntoAClassWithChildrenWhileFlowsNameIt) {
  const ClassChanges changes = PlanClassChanges({Leaf(1, 0)}, {Inner(1, 0), Leaf(2, 1)});
  EXPECT_THAT(changes.first, IsEmpty());
  EXPECT_THAT(changes.removed, ElementsAre(1));
  EXPECT_EQ(changes.again.size(), 2U);
}

TEST(PlanClassChanges, ReachesWhatIsWantedFromAnywhere) {
  std::mt19937 random(20);
  const auto any_tree = [&] {
    std::vector<ShapeClass> tree;
    std::vector<ShapeClassId> ids = {1, 2, 3, 4, 5, 6};
    std::shuffle(ids.begin(), ids.end(), random);
    ids.resize(random() % (ids.size() + 1));
    std::vector<ShapeClassId> parents = {0};
    for (const ShapeClassId id : ids) {
      tree.push_back(Inner(id, parents[random() % parents.size()], 1 + random() % 2));
      parents.push_back(id);
    }
    for (ShapeClass& one : tree) {
      const bool has_children = std::any_of(tree.begin(), tree.end(), [&](const ShapeClass& other) {
        return other.parent == one.id;
      });
      if (!has_children) one.queue = units::ByteCount(100 + random() % 2);
    }
    return tree;
  };
  for (int i = 0; i < 2000 && !::testing::Test::HasFatalFailure(); ++i) {
    ExpectReaches(any_tree(), any_tree());
  }
}

}  // namespace
}  // namespace spoke::netagent
