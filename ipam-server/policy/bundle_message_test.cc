#include "ipam-server/policy/bundle_message.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/policy/policy_file.h"

namespace spoke::ipam {
namespace {

using ::testing::ElementsAre;

ObjectSet Applied(const ObjectSet& set, const std::string& text) {
  const auto plan = PlanApply(set, ParsePolicyFiles(std::vector<PolicyFileText>{{"f", text}}), {},
                              absl::FromUnixMillis(1'700'000'000'000));
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan->next;
}

std::string Team(const std::string& name, const std::string& space) {
  return "---\napiVersion: spoke/v1\nkind: Team\nmetadata: {name: " + name +
         "}\nspec: {namespaces: [" + space + "]}\n";
}

TEST(ToMessage, HasTheEntriesAsAgentsReadThem) {
  ObjectSet set = Applied({}, Team("a", "x") + Team("b", "y") + Team("c", "z"));
  BundleHistory history(set);
  const auto before = history.For({});
  const v1::PolicyBundle full = ToMessage(DeltaFrom(nullptr, *before));
  EXPECT_TRUE(full.full());
  EXPECT_EQ(full.version(), set.node_version());
  ASSERT_EQ(full.changed_size(), 3);
  EXPECT_EQ(full.changed(0).key(), "Team/a");
  EXPECT_THAT(full.changed(0).team().namespaces(), ElementsAre("x"));

  set = Applied(set, Team("b", "w"));
  const auto deleted =
      PlanDelete(set, std::vector<ObjectKey>{{"Team", "c"}}, {}, absl::UnixEpoch());
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  history.Advance(deleted->next);
  const v1::PolicyBundle delta = ToMessage(DeltaFrom(before.get(), *history.For({})));
  EXPECT_FALSE(delta.full());
  EXPECT_EQ(delta.base_version(), before->version);
  ASSERT_EQ(delta.changed_size(), 1);
  EXPECT_THAT(delta.changed(0).team().namespaces(), ElementsAre("w"));
  EXPECT_THAT(delta.removed(), ElementsAre("Team/c"));
}

TEST(BundleMessages, AreMadeOnceForAllThatNeedTheSame) {
  ObjectSet set = Applied({}, Team("a", "x") + Team("b", "y"));
  BundleHistory history(set);
  const auto before = history.For({});
  history.Advance(Applied(set, Team("b", "z")));
  const auto after = history.For({});
  BundleMessages messages;
  const auto full = messages.Get(nullptr, after);
  const auto delta = messages.Get(before, after);
  EXPECT_TRUE(full->full());
  EXPECT_FALSE(delta->full());
  EXPECT_EQ(messages.Get(nullptr, after), full);
  EXPECT_EQ(messages.Get(before, after), delta);
}

TEST(BundleMessages, ForgetsTheOldest) {
  BundleMessages messages;
  const auto first = std::make_shared<const Bundle>(Bundle{1, {}});
  const auto message = messages.Get(nullptr, first);
  for (size_t i = 0; i < BundleMessages::kKept; ++i) {
    messages.Get(nullptr, std::make_shared<const Bundle>(Bundle{i + 2, {}}));
  }
  EXPECT_NE(messages.Get(nullptr, first), message);
  EXPECT_EQ(message.use_count(), 1);
}

}  // namespace
}  // namespace spoke::ipam
