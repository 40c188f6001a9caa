#include "ipam-server/policy/objects/object_set.h"

#include <string>
#include <utility>
#include <vector>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/policy/objects/testing/fake_spec.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

using ::testing::HasSubstr;

const absl::Time kNow = absl::FromUnixMillis(1'700'000'000'000);

ObjectSet Applied(const ObjectSet& set, std::vector<SourcedObject> objects, absl::Time now = kNow) {
  const auto plan = PlanApply(set, Files(std::move(objects)), {}, now);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? plan->next : set;
}

std::shared_ptr<FakeSpec> WithBlock(const std::string& share, const std::string& cidr, int line) {
  auto spec = MakeSpec("{\"block\":\"" + cidr + "\"}");
  spec->claims = {BlockClaim(share, cidr, line)};
  return spec;
}

ObjectKey Key(const std::string& name) { return {.kind = "Fake", .name = name}; }

TEST(PlanApply, CreatesChangesAndLeaves) {
  const ObjectSet first = Applied({}, {FromFile("a", MakeSpec("1")), FromFile("b", MakeSpec("1"))});
  const auto plan = PlanApply(first,
                              Files({FromFile("c", MakeSpec("1")), FromFile("a", MakeSpec("1")),
                                     FromFile("b", MakeSpec("2"))}),
                              {}, kNow + absl::Seconds(1));
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->changes.size(), 3U);
  EXPECT_EQ(plan->changes[0].action, ChangeAction::kCreated);
  EXPECT_EQ(plan->changes[0].before, nullptr);
  EXPECT_EQ(plan->changes[1].action, ChangeAction::kUnchanged);
  EXPECT_EQ(plan->changes[1].after->version, first.version());
  EXPECT_EQ(plan->changes[2].action, ChangeAction::kChanged);
  EXPECT_EQ(plan->changes[2].before->spec->ToJson(), "1");
  EXPECT_EQ(plan->changes[2].after->spec->ToJson(), "2");
  EXPECT_EQ(plan->next.Find(Key("b"))->version, plan->next.version());
  EXPECT_EQ(plan->next.Find(Key("b"))->changed, kNow + absl::Seconds(1));
  EXPECT_EQ(first.Find(Key("c")), nullptr) << "a set never changes";
  EXPECT_EQ(NameOf(plan->changes[0].action), "created");
}

TEST(PlanApply, AppliedAgainItChangesNothing) {
  const ObjectSet set = Applied({}, {FromFile("a", MakeSpec("1"))});
  const ObjectSet again = Applied(set, {FromFile("a", MakeSpec("1"))}, kNow + absl::Hours(1));
  EXPECT_EQ(again.versions(), set.versions());
}

TEST(PlanApply, VersionsRiseWithTheClockAndWithoutIt) {
  EXPECT_EQ(ObjectSet().version(), 1U);
  const ObjectSet first = Applied({}, {FromFile("a", MakeSpec("1"))});
  EXPECT_EQ(first.version(), 1'700'000'000'000U);
  const ObjectSet same_time = Applied(first, {FromFile("a", MakeSpec("2"))});
  EXPECT_EQ(same_time.version(), first.version() + 1);
  const ObjectSet back = Applied(same_time, {FromFile("a", MakeSpec("3"))}, kNow - absl::Hours(1));
  EXPECT_EQ(back.version(), first.version() + 2);
  const ObjectSet before_1970 =
      Applied({}, {FromFile("a", MakeSpec("3"))}, absl::UnixEpoch() - absl::Hours(1));
  EXPECT_EQ(before_1970.version(), 2U);
}

TEST(PlanApply, OnlyWhatNodesGetMovesTheirVersion) {
  const ObjectSet first = Applied({}, {FromFile("a", MakeSpec("1"))});
  auto server_only = MakeSpec("1");
  server_only->for_nodes = false;
  const ObjectSet second = Applied(first, {FromFile("b", server_only)});
  EXPECT_GT(second.version(), first.version());
  EXPECT_EQ(second.node_version(), first.node_version());
  auto no_more = MakeSpec("2");
  no_more->for_nodes = false;
  const ObjectSet third = Applied(second, {FromFile("a", no_more)});
  EXPECT_EQ(third.node_version(), third.version()) << "nodes must hear that it has gone";
}

TEST(PlanApply, AllProblemsComeAtOnceInTheOrderOfTheFiles) {
  ParsedFiles parsed =
      Files({FromFile("a", WithBlock("a", "10.0.0.0/8", 12), 10), FromFile("a", MakeSpec("2"), 20),
             FromFile("b", WithBlock("b", "10.1.0.0/16", 32), 30)});
  parsed.problems = {{"f", 5, "spec.x", "is unknown"}};
  const auto plan = PlanApply({}, parsed, {}, kNow);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(base::MessageOf(plan.status()),
            "f:5: spec.x: is unknown\n"
            "f:20: metadata.name: Fake \"a\" is given twice: f:10 has it already; remove one of "
            "them\n"
            "f:32: spec.block: 10.1.0.0/16 overlaps 10.0.0.0/8, the block of Fake \"a\" (f:12): "
            "change one of them");
}

TEST(PlanApply, AClashWithWhatIsInForceIsAPreconditionThatFailed) {
  const ObjectSet set = Applied({}, {FromFile("a", WithBlock("a", "10.0.0.0/8", 2))});
  const auto plan =
      PlanApply(set, Files({FromFile("b", WithBlock("b", "10.1.0.0/16", 3))}), {}, kNow);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(base::MessageOf(plan.status()),
            "f:3: spec.block: 10.1.0.0/16 overlaps 10.0.0.0/8, the block of Fake \"a\" (applied "
            "before): change one of them");
}

TEST(PlanApply, ABlockMayMoveFromOneObjectToAnotherInOneStep) {
  const ObjectSet set = Applied({}, {FromFile("a", WithBlock("a", "10.0.0.0/8", 2))});
  const ObjectSet moved = Applied(set, {FromFile("b", WithBlock("b", "10.1.0.0/16", 2)),
                                        FromFile("a", WithBlock("a", "11.0.0.0/8", 7))});
  EXPECT_EQ(moved.objects().size(), 2U);
}

TEST(PlanApply, WhatABrokenObjectReplacesIsNoOverlap) {
  const ObjectSet set = Applied({}, {FromFile("a", WithBlock("a", "10.0.0.0/8", 2))});
  ParsedFiles parsed =
      Files({FromFile("a", nullptr, 1), FromFile("b", WithBlock("b", "10.1.0.0/16", 9), 8)});
  parsed.problems = {{"f", 3, "spec.block", "is wrong"}};
  const auto plan = PlanApply(set, parsed, {}, kNow);
  EXPECT_EQ(base::MessageOf(plan.status()), "f:3: spec.block: is wrong");
}

TEST(PlanApply, TheConfigurationStands) {
  PolicyWorld world;
  world.configured = {{.key = Key("fixed"), .spec = WithBlock("fixed", "10.0.0.0/8", 0)}};
  auto plan = PlanApply({}, Files({FromFile("fixed", MakeSpec("1"))}), world, kNow);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(base::MessageOf(plan.status()), HasSubstr("is in the server's configuration"));
  plan = PlanApply({}, Files({FromFile("b", WithBlock("b", "10.1.0.0/16", 4))}), world, kNow);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(base::MessageOf(plan.status()),
              HasSubstr("the block of Fake \"fixed\" (in the server's configuration)"));
}

TEST(PlanApply, WhatIsUsedMayRefuse) {
  const ObjectSet set = Applied({}, {FromFile("a", MakeSpec("1"))});
  PolicyWorld world;
  world.used[Key("a")] = {.held = 1, .lowest = {}, .highest = {}};
  const auto plan = PlanApply(set, Files({FromFile("a", MakeSpec("2"), 7)}), world, kNow);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(base::MessageOf(plan.status()), "f:7: spec: used: it cannot change");
}

TEST(PlanApply, TheNumberOfObjectsAndTheirSizeAreCapped) {
  std::vector<SourcedObject> many;
  for (size_t i = 0; i <= kMaxObjects; ++i)
    many.push_back(FromFile(std::to_string(i), MakeSpec("")));
  const auto plan = PlanApply({}, Files(std::move(many)), {}, kNow);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kResourceExhausted);
  const auto large =
      PlanApply({},
                Files({FromFile("small", MakeSpec("x")),
                       FromFile("large", MakeSpec(std::string(kMaxBundleBytes - 100, 'x'))),
                       FromFile("other", MakeSpec(std::string(200, 'x')))}),
                {}, kNow);
  EXPECT_EQ(large.status().code(), absl::StatusCode::kResourceExhausted);
  const std::string message(base::MessageOf(large.status()));
  EXPECT_NE(message.find(fmt::format("more than the {} that an agent takes", kMaxBundleBytes)),
            std::string::npos)
      << message;
  EXPECT_NE(message.find(Key("large").ToString() + " has"), std::string::npos) << message;
}

TEST(PlanDelete, DeletesEachOnce) {
  const ObjectSet set = Applied({}, {FromFile("a", MakeSpec("1")), FromFile("b", MakeSpec("1"))});
  const auto plan = PlanDelete(set, std::vector{Key("a"), Key("a")}, {}, kNow);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->changes.size(), 1U);
  EXPECT_EQ(plan->changes[0].action, ChangeAction::kDeleted);
  EXPECT_EQ(plan->next.Find(Key("a")), nullptr);
  EXPECT_EQ(plan->next.node_version(), set.version() + 1);
  EXPECT_EQ(plan->next.Find(Key("b"))->version, set.version());
}

TEST(PlanDelete, RefusesWhatIsMissingUsedOrConfigured) {
  const ObjectSet set = Applied({}, {FromFile("a", MakeSpec("1"))});
  PolicyWorld world;
  world.used[Key("a")] = {.held = 1, .lowest = {}, .highest = {}};
  world.configured = {{.key = Key("fixed"), .spec = MakeSpec("1")}};
  auto plan = PlanDelete(set, std::vector{Key("a"), Key("fixed")}, world, kNow);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(base::MessageOf(plan.status()),
            "Fake \"a\": used: it cannot go\n"
            "Fake \"fixed\" is in the server's configuration: remove it there");
  plan = PlanDelete(set, std::vector{Key("a"), Key("gone")}, world, kNow);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(base::MessageOf(plan.status()), HasSubstr("Fake \"gone\": there is no such object"));
}

TEST(CheckAgainst, NamesWhatANewConfigurationBreaks) {
  const ObjectSet set = Applied({}, {FromFile("a", WithBlock("a", "10.1.0.0/16", 2))});
  EXPECT_TRUE(CheckAgainst(set, {}).ok());
  PolicyWorld world;
  world.configured = {{.key = Key("a"), .spec = MakeSpec("1")},
                      {.key = Key("c"), .spec = WithBlock("c", "10.0.0.0/8", 0)}};
  const absl::Status status = CheckAgainst(set, world);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(base::MessageOf(status), HasSubstr("Fake \"a\": is applied, and in the server's"));
  EXPECT_THAT(base::MessageOf(status), HasSubstr("Fake \"a\": spec.block: 10.1.0.0/16 overlaps"));
}

TEST(Restore, TakesWhatWasAppliedAndRefusesWhatCannotBe) {
  const ObjectSet set = Applied({}, {FromFile("a", MakeSpec("1"))});
  const PolicyObject object = *set.Find(Key("a"));
  const auto restored = ObjectSet::Restore({object}, set.versions());
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(restored->versions(), set.versions());
  EXPECT_EQ(restored->Find(Key("a"))->spec, object.spec);
  for (const auto& broken : {ObjectSet::Restore({object, object}, set.versions()),
                             ObjectSet::Restore({object}, {.version = 1, .node_version = 1}),
                             ObjectSet::Restore({}, {.version = 1, .node_version = 2}),
                             ObjectSet::Restore({}, {.version = 1, .node_version = 0})}) {
    EXPECT_EQ(broken.status().code(), absl::StatusCode::kDataLoss);
  }
}

}  // namespace
}  // namespace spoke::ipam
