#include "netagent/cleanup/cleanup_plan.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/claims.h"

namespace spoke::netagent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* kPod = "spk0123456789ab";

// Returns "kind what" of each.
std::vector<std::string> Lines(const CleanupPlan& plan) {
  std::vector<std::string> lines;
  for (const Removal& removal : plan.removals) {
    lines.push_back(std::string(NameOf(removal.kind)) + " " + removal.what);
  }
  return lines;
}

TEST(PlanCleanup, ANodeWithNothingOfOursNeedsNothing) {
  const NodeTraces others = {
      .links = {{1, "lo", "", 0},
                {2, "eth0", "", 0},
                {3, "spk0123456789ag", "veth", 0},  // It has a letter that is no digit.
                {4, "spk0123", "veth", 0},          // It is too short.
                {5, kPod, "bridge", 0},             // It is of another kind.
                {6, "spoke-in", "dummy", 0},        // It is of another kind.
                {7, "spoke-in2", "ifb", 0},         // It has another name.
                {9, "spoke-tunnel", "bridge", 0},   // It is of another kind.
                {8, "veth0", "veth", claims::kFirstDeletionGroup}},       // It has no name of ours.
      .filters = {{2, true, claims::kFastPathPriority, "their_program"},  // It has another name.
                  {2, true, 1, "spoke_fast"},  // It has another priority.
                  {2, false, claims::kShapePriority, ""}},
      .rules = {{"theirs", claims::kSourcePriority, 4}, {"also theirs", 32766, 83}},
      .routes = {{"theirs", 4, 2}, {"kernel's", 2, 0}},
      .files = {{"/conf", FileRole::kConflist, "it names another plugin"}}};
  const CleanupPlan plan = PlanCleanup(others);
  EXPECT_THAT(Lines(plan), IsEmpty());
  EXPECT_THAT(plan.pods_links, IsEmpty());
  EXPECT_THAT(plan.left, ElementsAre(LeftAlone{"/conf", "it names another plugin"}));
}

TEST(PlanCleanup, EverythingGoesInOrder) {
  const uint8_t ours = claims::kRouteProtocol;
  const NodeTraces traces = {
      .links = {{2, "eth0", "", 0},
                {3, "spoke-in", "ifb", 0},
                {4, "spoke-out", "ifb", 0},
                {7, "spoke-tunnel", "vxlan", 0},
                {5, kPod, "veth", 0},
                {6, "spkffffffffffff", "veth", claims::kFirstDeletionGroup + 3}},
      .filters = {{2, true, claims::kFastPathPriority, "spoke_fast"},
                  {2, false, claims::kFastPathPriority, "spoke_fast"},
                  {5, true, claims::kShapePriority, "spoke_shape"}},
      .rules = {{"r1", claims::kGatewayPriority, ours},
                {"r2", claims::kMainFirstPriority, ours},
                {"r3", claims::kSourcePriority, ours}},
      .routes = {{"to the pod", ours, 5},
                 {"unreachable", ours, 0},
                 {"by eth0", ours, 2},
                 {"by the tunnel", ours, 7}},
      .tables = {"inet spoke"},
      .published = {"nft INPUT"},
      .files = {{"/run", FileRole::kDirectory, ""},
                {"/run/lock", FileRole::kLock, ""},
                {"/run/state", FileRole::kState, ""},
                {"/bin/spoke", FileRole::kPlugin, ""},
                {"/conf", FileRole::kConflist, ""}}};
  const CleanupPlan plan = PlanCleanup(traces);
  EXPECT_THAT(
      Lines(plan),
      ElementsAre("file /conf", "filter eth0 ingress spoke_fast", "filter eth0 egress spoke_fast",
                  "qdisc clsact eth0", std::string("link ") + kPod, "link spkffffffffffff",
                  "link spoke-in", "link spoke-out", "rule r1", "rule r2", "rule r3",
                  "link spoke-tunnel", "route unreachable", "route by eth0", "table inet spoke",
                  "iptables rule nft INPUT", "file /bin/spoke", "file /run/state", "file /run/lock",
                  "file /run"));
  // The link whose deletion is deferred is no pod's any more.
  EXPECT_THAT(plan.pods_links, ElementsAre(kPod));
  EXPECT_EQ(plan.removals[3].object, 0U);
  EXPECT_EQ(plan.removals[12].object, 1U);
}

TEST(PlanCleanup, WhereOthersHaveFiltersTheirPlaceStays) {
  const CleanupPlan plan = PlanCleanup(
      {.links = {{2, "eth0", "", 0}},
       .filters = {{2, true, claims::kFastPathPriority, "spoke_fast"}, {2, false, 1, ""}}});
  EXPECT_THAT(Lines(plan), ElementsAre("filter eth0 ingress spoke_fast"));
}

TEST(PlanCleanup, AFilterThatSharesItsPriorityStaysAndIsSaid) {
  const CleanupPlan plan =
      PlanCleanup({.links = {{2, "eth0", "", 0}},
                   .filters = {{2, true, claims::kFastPathPriority, "spoke_fast"},
                               {2, true, claims::kFastPathPriority, "theirs"}}});
  EXPECT_THAT(Lines(plan), IsEmpty());
  EXPECT_THAT(plan.left,
              ElementsAre(LeftAlone{"filter eth0 ingress spoke_fast",
                                    "somebody else's filter has the same priority 8320"}));
}

}  // namespace
}  // namespace spoke::netagent
