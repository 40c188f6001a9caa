#include "ipam-server/budget/budget_spec.h"

#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

TEST(FloorOfNode, IsANodesPartOfWhatIsSetApart) {
  BudgetSpec spec;
  spec.capacity = units::BitRate(40'000'000'000);
  EXPECT_EQ(FloorOfNode(spec).count(), 2'000'000'000U / 8192);
  spec.floor_nodes = 1;
  EXPECT_EQ(FloorOfNode(spec).count(), 2'000'000'000U);
}

TEST(FloorOfNode, IsNeverMoreThanItsPartInAll) {
  for (uint64_t capacity = 1'000'000; capacity <= 1'000'000'000'000; capacity = capacity * 7 + 3) {
    for (const uint64_t nodes : {1U, 3U, 7500U, 8192U, 100'000U}) {
      const BudgetSpec spec{
          .capacity = units::BitRate(capacity), .floor_part = 0.1, .floor_nodes = nodes};
      EXPECT_LE(FloorOfNode(spec).count() * nodes, capacity / 10 + 1) << capacity << " " << nodes;
    }
  }
}

TEST(FloorOfNode, IsNothingWhenNothingIsSetApart) {
  BudgetSpec spec;
  spec.capacity = units::BitRate(40'000'000'000);
  spec.floor_part = 0;
  EXPECT_EQ(FloorOfNode(spec).count(), 0U);
  spec.floor_part = 0.05;
  spec.floor_nodes = 0;
  EXPECT_EQ(FloorOfNode(spec).count(), 0U);
}

}  // namespace
}  // namespace spoke::ipam
