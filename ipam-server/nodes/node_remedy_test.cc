#include "ipam-server/nodes/node_remedy.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

using kubernetes::Taint;
using testing::HasSubstr;

TEST(TaintEffect, HasTheWordsOfKubernetes) {
  for (const TaintEffect effect :
       {TaintEffect::kNone, TaintEffect::kNoSchedule, TaintEffect::kNoExecute}) {
    EXPECT_EQ(*ParseTaintEffect(NameOf(effect)), effect);
  }
  for (const char* text : {"", "None", "noschedule", "PreferNoSchedule"}) {
    EXPECT_THAT(std::string(ParseTaintEffect(text).status().message()),
                HasSubstr("must be none, NoSchedule or NoExecute"))
        << text;
  }
}

std::string EffectOf(const std::optional<Taint>& taint) { return taint ? taint->effect : "none"; }

TEST(DueTaint, NamesItsCause) {
  EXPECT_EQ(DueTaint({.key = "k", .value = "v"}, {}, nullptr), (Taint{"k", "v", "NoSchedule"}));
  EXPECT_EQ(DueTaint({.key = "k", .value = "v"}, {.effect = TaintEffect::kNone}, nullptr),
            std::nullopt);
}

TEST(DueTaint, PodsHaveToGoAfterItsTimeAndWhenTheyAreHurt) {
  const Remedy evicts{.effect = TaintEffect::kNoExecute, .evict_after = absl::Minutes(5)};
  EXPECT_EQ(EffectOf(DueTaint({.since = absl::Seconds(299)}, evicts, nullptr)), "NoSchedule");
  EXPECT_EQ(EffectOf(DueTaint({.since = absl::Seconds(300)}, evicts, nullptr)), "NoExecute");
  EXPECT_EQ(EffectOf(DueTaint({.since = absl::Hours(1), .may_evict = false}, evicts, nullptr)),
            "NoSchedule");
  EXPECT_EQ(EffectOf(DueTaint({.since = absl::Hours(1)}, {}, nullptr)), "NoSchedule");
}

TEST(DueTaint, WhatEvictsGoesOnUntilThePolicySaysOtherwise) {
  const Taint present{"k", "v", "NoExecute"};
  const Remedy evicts{.effect = TaintEffect::kNoExecute, .evict_after = absl::Minutes(5)};
  EXPECT_EQ(EffectOf(DueTaint({.may_evict = false}, evicts, &present)), "NoExecute");
  EXPECT_EQ(EffectOf(DueTaint({.since = absl::Hours(1)}, {}, &present)), "NoSchedule");
  EXPECT_EQ(EffectOf(DueTaint({}, {.effect = TaintEffect::kNone}, &present)), "none");
}

}  // namespace
}  // namespace spoke::ipam
