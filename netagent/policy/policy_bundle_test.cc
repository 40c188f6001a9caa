#include "netagent/policy/policy_bundle.h"

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/policy/testing/blocks.h"

namespace spoke::netagent {
namespace {

using testing::HasSubstr;

policy::Entry TeamEntry(const std::string& name, std::vector<std::string> namespaces) {
  return {.key = "Team/" + name, .bytes = "t", .value = policy::Team{std::move(namespaces)}};
}

policy::Entry NetworkEntry() {
  return {.key = "ClusterNetwork/main",
          .bytes = "n",
          .value = policy::ClusterNetwork{.cluster = {ip::Prefix()}}};
}

Policy Base() {
  return ApplyPolicy(
             {}, {.version = 3, .full = true, .changed = {NetworkEntry(), TeamEntry("a", {"web"})}})
      .value();
}

TEST(PolicyBundle, AFullOneReplacesEverything) {
  const auto next =
      ApplyPolicy(Base(), {.version = 2, .full = true, .changed = {TeamEntry("b", {"batch"})}});
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->version, 2U);  // An older one is taken too: the server may have been restored.
  EXPECT_EQ(next->entries.size(), 1U);
  EXPECT_TRUE(next->entries.contains("Team/b"));
}

TEST(PolicyBundle, ADeltaChangesWhatItNamesAndCanBeRepeated) {
  const policy::Update delta{.version = 4,
                             .base_version = 3,
                             .changed = {TeamEntry("a", {"web", "api"}), TeamEntry("b", {})},
                             .removed = {"ClusterNetwork/main", "Team/unheard-of"}};
  const auto next = ApplyPolicy(Base(), delta);
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->version, 4U);
  EXPECT_EQ(next->entries.size(), 2U);
  EXPECT_EQ(std::get<policy::Team>(next->entries.at("Team/a").value).namespaces.size(), 2U);
  EXPECT_EQ(ApplyPolicy(*next, delta).value(), *next);
}

TEST(PolicyBundle, ADeltaToAnotherVersionIsNotGuessedAt) {
  const auto next = ApplyPolicy(Base(), {.version = 6, .base_version = 5});
  EXPECT_EQ(next.status().code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(next.status().message()),
              HasSubstr("relative to 5, but this node has 3"));
  EXPECT_FALSE(ApplyPolicy({}, {.version = 6, .base_version = 5}).ok());
}

TEST(PolicyBundle, AKindThatIsNotKnownIsKept) {
  const policy::Entry future{.key = "EgressPolicy/x", .bytes = "whatever"};
  const auto next = ApplyPolicy(Base(), {.version = 4, .base_version = 3, .changed = {future}});
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->entries.at("EgressPolicy/x"), future);
}

TEST(PolicyBundle, NothingIsTakenOfAnUpdateWithAMistake) {
  const absl::Status mistake =
      absl::InvalidArgumentError("Team/x: namespaces: 'X' is no namespace");
  policy::Update update{
      .version = 4, .base_version = 3, .changed = {TeamEntry("fine", {"web"})}, .mistake = mistake};
  EXPECT_EQ(ApplyPolicy(Base(), update).status(), mistake);
  // An update for another version has to be asked for anew, whatever it holds.
  update.base_version = 2;
  EXPECT_EQ(ApplyPolicy(Base(), update).status().code(), absl::StatusCode::kAborted);
}

TEST(PolicyBundle, OneKeyTwiceAndVersionZeroAreMistakes) {
  EXPECT_FALSE(ApplyPolicy(Base(), {.version = 4,
                                    .base_version = 3,
                                    .changed = {TeamEntry("x", {}), TeamEntry("x", {})}})
                   .ok());
  EXPECT_FALSE(ApplyPolicy(Base(), {.version = 0, .full = true}).ok());
}

TEST(PolicyBundle, AServerCannotFillTheNodesMemory) {
  policy::Entry large = TeamEntry("large", {});
  large.bytes.resize(kMaxPolicyBytes);
  EXPECT_EQ(ApplyPolicy({}, {.version = 1, .full = true, .changed = {large}}).status().code(),
            absl::StatusCode::kResourceExhausted);
  policy::Update many{.version = 1, .full = true};
  for (size_t i = 0; i <= kMaxPolicyEntries; ++i) {
    many.changed.push_back(TeamEntry(std::to_string(i), {}));
  }
  EXPECT_EQ(ApplyPolicy({}, many).status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace spoke::netagent
