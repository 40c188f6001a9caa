#include "netagent/policy/policy_bundle.h"

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

using testing::HasSubstr;

PolicyEntry TeamEntry(const std::string& name, std::vector<std::string> namespaces) {
  return {.key = "Team/" + name, .bytes = "t", .value = Team{std::move(namespaces)}};
}

PolicyEntry NetworkEntry(std::vector<std::string> cluster) {
  return {.key = "ClusterNetwork/main",
          .bytes = "n",
          .value = ClusterNetwork{.cluster = std::move(cluster)}};
}

Policy Base() {
  return ApplyPolicy({}, {.version = 3,
                          .full = true,
                          .changed = {NetworkEntry({"10.0.0.0/8"}), TeamEntry("a", {"web"})}})
      .value();
}

TEST(PolicyBundle, AFullOneReplacesEverything) {
  const auto next =
      ApplyPolicy(Base(), {.version = 2, .full = true, .changed = {TeamEntry("b", {"batch"})}});
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->version, 2U);  // An older one too: the server may have been restored.
  EXPECT_EQ(next->entries.size(), 1U);
  EXPECT_TRUE(next->entries.contains("Team/b"));
}

TEST(PolicyBundle, ADeltaChangesWhatItNamesAndCanBeRepeated) {
  const PolicyUpdate delta{.version = 4,
                           .base_version = 3,
                           .changed = {TeamEntry("a", {"web", "api"}), TeamEntry("b", {})},
                           .removed = {"ClusterNetwork/main", "Team/unheard-of"}};
  const auto next = ApplyPolicy(Base(), delta);
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->version, 4U);
  EXPECT_EQ(next->entries.size(), 2U);
  EXPECT_EQ(std::get<Team>(next->entries.at("Team/a").value).namespaces.size(), 2U);
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
  const PolicyEntry future{.key = "EgressPolicy/x", .bytes = "whatever"};
  const auto next = ApplyPolicy(Base(), {.version = 4, .base_version = 3, .changed = {future}});
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->entries.at("EgressPolicy/x"), future);
}

TEST(PolicyBundle, MistakesAreNamedAndNothingOfTheUpdateIsTaken) {
  struct Case {
    PolicyEntry entry;
    std::string want;
  };
  for (const Case& c :
       {Case{NetworkEntry({"10.0.0.5/8"}), "ClusterNetwork/main: cluster: "},
        Case{NetworkEntry({"tomato"}), "ClusterNetwork/main: cluster: "},
        Case{{.key = "ClusterNetwork/main", .value = ClusterNetwork{.storage = {"fd00::/129"}}},
             "storage"},
        Case{TeamEntry("a", {"Web"}), "Team/a: namespaces: 'Web' is no namespace"},
        Case{TeamEntry("a", {"-web"}), "is no namespace"},
        Case{TeamEntry("a", {std::string(64, 'a')}), "is no namespace"},
        Case{TeamEntry("", {}), "not KIND/NAME"},
        Case{{.key = "ClusterNetwork/a", .value = Team{}}, "ClusterNetwork/a holds a Team"},
        Case{{.key = "", .value = {}}, "not KIND/NAME"},
        Case{{.key = "a/\n", .value = {}}, "not KIND/NAME"},
        Case{{.key = "a/" + std::string(400, 'x'), .value = {}}, "not KIND/NAME"}}) {
    const auto next = ApplyPolicy(
        Base(),
        {.version = 4, .base_version = 3, .changed = {TeamEntry("fine", {"web"}), c.entry}});
    EXPECT_EQ(next.status().code(), absl::StatusCode::kInvalidArgument) << c.want;
    EXPECT_THAT(std::string(next.status().message()), HasSubstr(c.want));
  }
}

TEST(PolicyBundle, OneKeyTwiceAndVersionZeroAreMistakes) {
  EXPECT_FALSE(ApplyPolicy(Base(), {.version = 4,
                                    .base_version = 3,
                                    .changed = {TeamEntry("x", {}), TeamEntry("x", {})}})
                   .ok());
  EXPECT_FALSE(ApplyPolicy(Base(), {.version = 0, .full = true}).ok());
}

TEST(PolicyBundle, AServerCannotFillTheNodesMemory) {
  PolicyEntry large = TeamEntry("large", {});
  large.bytes.resize(kMaxPolicyBytes);
  EXPECT_EQ(ApplyPolicy({}, {.version = 1, .full = true, .changed = {large}}).status().code(),
            absl::StatusCode::kResourceExhausted);
  PolicyUpdate many{.version = 1, .full = true};
  for (size_t i = 0; i <= kMaxPolicyEntries; ++i) {
    many.changed.push_back(TeamEntry(std::to_string(i), {}));
  }
  EXPECT_EQ(ApplyPolicy({}, many).status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace spoke::netagent
