#include "ipam-server/policy/objects/rollout.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

using ::testing::ElementsAre;

TEST(SummarizeRollout, CountsEachNodeOnceAndListsTheRefusedFirst) {
  const std::vector<NodePolicy> nodes = {
      {.node = "z-pending", .connected = true, .acked = 6, .error = ""},
      {.node = "current", .connected = true, .acked = 7, .error = ""},
      {.node = "away", .connected = false, .acked = 7, .error = ""},
      {.node = "a-pending", .connected = true, .acked = 0, .error = ""},
      {.node = "refused", .connected = true, .acked = 6, .error = "no"},
      // An error of an earlier version that the agent has got over.
      {.node = "recovered", .connected = true, .acked = 7, .error = "old"},
  };
  const Rollout rollout = SummarizeRollout(7, nodes);
  EXPECT_EQ(rollout.version, 7U);
  EXPECT_EQ(rollout.nodes, 6U);
  EXPECT_EQ(rollout.current, 2U);
  EXPECT_EQ(rollout.refused, 1U);
  EXPECT_EQ(rollout.pending, 2U);
  EXPECT_EQ(rollout.away, 1U);
  EXPECT_THAT(rollout.behind, ElementsAre(4, 3, 0));
}

TEST(SummarizeRollout, AddsUpWhatIsCutAndWhatWaitsForAWord) {
  const std::vector<NodePolicy> nodes = {
      {.node = "a", .connected = true, .acked = 7, .error = "", .cut = {100, 3}},
      {.node = "b", .connected = true, .acked = 7, .error = "", .cut = {50, 0}},
      {.node = "c",
       .connected = true,
       .acked = 6,
       .error = "40 of 90",
       .held = true,
       .cut = {90, 40}},
      {.node = "d", .connected = true, .acked = 6, .error = "broken"},
      {.node = "e", .connected = false, .acked = 7, .error = "", .cut = {9, 9}},
  };
  const Rollout rollout = SummarizeRollout(7, nodes);
  EXPECT_EQ(rollout.refused, 2U);
  EXPECT_EQ(rollout.held, 1U);
  EXPECT_EQ(rollout.done, (node_api::CutCount{150, 3}));
  EXPECT_EQ(rollout.waiting, (node_api::CutCount{90, 40}));
}

TEST(SummarizeRollout, ListsABoundedNumberAndCountsAll) {
  const std::vector<NodePolicy> nodes(7500,
                                      {.node = "n", .connected = true, .acked = 1, .error = ""});
  const Rollout rollout = SummarizeRollout(2, nodes);
  EXPECT_EQ(rollout.pending, 7500U);
  EXPECT_EQ(rollout.behind.size(), kMaxBehind);
}

}  // namespace
}  // namespace spoke::ipam
