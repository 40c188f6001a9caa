// NodeRemedy.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/policy/kinds/node_remedy.h"
#include "ipam-server/policy/object_text.h"
#include "ipam-server/policy/testing/kinds_for_test.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

INSTANTIATE_TEST_SUITE_P(
    NodeRemedy, RefusedSpecTest,
    testing::Values(
        Refused{"Nothing", "NodeRemedy", "{}",
                "f:4: spec: says nothing: give one of unfit, noAddresses and maintenance"},
        Refused{"NoEffect", "NodeRemedy", "{unfit: {}}",
                "f:4: spec.unfit.effect: is required but missing"},
        Refused{"OtherEffect", "NodeRemedy", "{unfit: {effect: drain}}",
                "f:4: spec.unfit.effect: must be none, NoSchedule or NoExecute, not 'drain'"},
        Refused{"EvictsForLackOfAddresses", "NodeRemedy", "{noAddresses: {effect: NoExecute}}",
                "f:4: spec.noAddresses.effect: must be none or NoSchedule: the pods that run "
                "there have addresses"},
        Refused{"DelayOfNothing", "NodeRemedy", "{unfit: {effect: NoSchedule, evictAfter: 5m}}",
                "f:4: spec.unfit.evictAfter: means nothing with the effect NoSchedule: remove it, "
                "or take the effect NoExecute"},
        Refused{"LongDelay", "NodeRemedy", "{unfit: {effect: NoExecute, evictAfter: 25h}}",
                "f:4: spec.unfit.evictAfter: must be from 0 to 24h, not \"25h\""}),
    NameOfCase);

TEST(NodeRemedy, TheDefaultKeepsNewPodsAway) {
  const NodeRemedies remedies = RemediesOf(ObjectSet());
  EXPECT_EQ(remedies.unfit, Remedy{.effect = TaintEffect::kNoSchedule});
  EXPECT_EQ(remedies.no_addresses, Remedy{.effect = TaintEffect::kNoSchedule});
  EXPECT_EQ(remedies.maintenance, Remedy{.effect = TaintEffect::kNoSchedule});
}

TEST(NodeRemedy, SaysItForEachCauseAndIsForTheServerAlone) {
  const ObjectSet set = Applied(
      Document("NodeRemedy", "jobs",
               "{unfit: {effect: NoExecute, evictAfter: 90m}, maintenance: {effect: none}}"));
  EXPECT_EQ(
      RemediesOf(set),
      (NodeRemedies{.unfit = {.effect = TaintEffect::kNoExecute, .evict_after = absl::Minutes(90)},
                    .maintenance = {.effect = TaintEffect::kNone}}));
  const PolicyObject& object = *set.Find({"NodeRemedy", "jobs"});
  EXPECT_FALSE(object.spec->ForNodes(object.key).has_value());
}

TEST(NodeRemedy, WhatIsWrittenDownReadsAsTheSame) {
  for (const char* spec :
       {"{unfit: {effect: NoExecute}}", "{maintenance: {effect: NoExecute, evictAfter: 1500ms}}",
        "{noAddresses: {effect: none}}"}) {
    const ObjectSet set = Applied(Document("NodeRemedy", "jobs", spec));
    const std::string json = set.Find({"NodeRemedy", "jobs"})->spec->ToJson();
    EXPECT_EQ(RemediesOf(Applied(Document("NodeRemedy", "jobs", json))), RemediesOf(set)) << json;
  }
}

TEST(NodeRemedy, ThereIsOne) {
  const ObjectSet set = Applied(Document("NodeRemedy", "a", "{unfit: {effect: none}}"));
  const auto clash = Plan(set, Document("NodeRemedy", "b", "{unfit: {effect: none}}"));
  EXPECT_EQ(clash.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(base::MessageOf(clash.status()),
            "f:4: spec: \"all nodes\" is the scope of NodeRemedy \"a\" (applied before) already: "
            "remove it from one of them");
}

}  // namespace
}  // namespace spoke::ipam
