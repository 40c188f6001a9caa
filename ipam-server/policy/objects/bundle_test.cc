#include "ipam-server/policy/objects/bundle.h"

#include <random>
#include <set>
#include <string>
#include <utility>

#include "fmt/core.h"
#include "gtest/gtest.h"
#include "ipam-server/policy/objects/testing/fake_spec.h"

namespace spoke::ipam {
namespace {

const absl::Time kNow = absl::FromUnixMillis(1'700'000'000'000);

ObjectSet Put(const ObjectSet& set, const std::string& name, std::shared_ptr<FakeSpec> spec) {
  const auto plan = PlanApply(set, Files({FromFile(name, std::move(spec))}), {}, kNow);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan->next;
}

std::shared_ptr<FakeSpec> For(std::string text, NodeLabels wanted) {
  auto spec = MakeSpec(std::move(text));
  spec->wanted = std::move(wanted);
  return spec;
}

TEST(CompileBundle, TakesWhatNodesGetAndWhatTheirLabelsAskFor) {
  ObjectSet set = Put({}, "all", MakeSpec("1"));
  auto server_only = MakeSpec("2");
  server_only->for_nodes = false;
  set = Put(set, "server", server_only);
  set = Put(set, "zoned", For("3", {{"zone", "2"}}));
  EXPECT_EQ(CompileBundle(set, {}), (Bundle{set.node_version(), {{"Fake/all", "1"}}}));
  EXPECT_EQ(CompileBundle(set, {{"zone", "2"}, {"gpu", "h100"}}).entries.size(), 2U);
  EXPECT_EQ(CompileBundle(set, {{"zone", "1"}}).entries.size(), 1U);
}

TEST(DeltaFrom, IsFullWithoutABase) {
  const Bundle to{7, {{"a", "1"}}};
  const BundleDelta delta = DeltaFrom(nullptr, to);
  EXPECT_EQ(delta, (BundleDelta{7, true, 0, {{"a", "1"}}, {}}));
  EXPECT_EQ(ApplyDelta(nullptr, delta), to);
}

TEST(DeltaFrom, HoldsOnlyWhatDiffers) {
  const Bundle from{6, {{"a", "1"}, {"b", "1"}, {"c", "1"}, {"d", "1"}}};
  const Bundle to{7, {{"a", "1"}, {"b", "2"}, {"d", "1"}, {"e", "1"}}};
  const BundleDelta delta = DeltaFrom(&from, to);
  EXPECT_EQ(delta, (BundleDelta{7, false, 6, {{"b", "2"}, {"e", "1"}}, {"c"}}));
}

TEST(DeltaFrom, IsFullWhenThatIsShorter) {
  const Bundle from{6, {{"a", "1"}, {"b", "1"}, {"c", "1"}}};
  EXPECT_TRUE(DeltaFrom(&from, {7, {{"d", "1"}}}).full);
  EXPECT_TRUE(DeltaFrom(&from, {7, {}}).full);
}

TEST(ApplyDelta, RefusesAnotherBase) {
  const Bundle from{6, {}};
  const BundleDelta delta{.version = 7, .full = false, .base_version = 5};
  EXPECT_EQ(ApplyDelta(&from, delta), std::nullopt);
  EXPECT_EQ(ApplyDelta(nullptr, delta), std::nullopt);
}

Bundle RandomBundle(std::mt19937_64& random, uint64_t version) {
  Bundle bundle{.version = version};
  const size_t count = random() % 8;
  for (size_t i = 0; i < count; ++i) {
    bundle.entries[std::string(1, static_cast<char>('a' + random() % 10))] =
        std::to_string(random() % 3);
  }
  return bundle;
}

TEST(DeltaFrom, AppliedGivesTheGoalForAnyTwoBundles) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 100000; ++round) {
    const Bundle from = RandomBundle(random, 1);
    const Bundle to = RandomBundle(random, 2);
    const BundleDelta delta = DeltaFrom(&from, to);
    const auto got = ApplyDelta(&from, delta);
    ASSERT_TRUE(got == to) << "round " << round;
    if (!delta.full) {
      ASSERT_LE(delta.changed.size() + delta.removed.size(), to.entries.size());
      for (const std::string& key : delta.removed) ASSERT_TRUE(from.entries.contains(key));
    }
  }
}

TEST(BundleHistory, NodesThatGetTheSameShareOneBundle) {
  ObjectSet set = Put({}, "all", MakeSpec("1"));
  set = Put(set, "zoned", For("3", {{"zone", "2"}}));
  BundleHistory history(set);
  std::set<const Bundle*> bundles;
  for (int i = 0; i < 7500; ++i) {
    const NodeLabels labels = {{"host", std::to_string(i)}, {"zone", std::to_string(i % 3)}};
    const auto bundle = history.For(labels);
    EXPECT_EQ(*bundle, CompileBundle(set, labels));
    bundles.insert(bundle.get());
  }
  EXPECT_EQ(bundles.size(), 2U);
}

TEST(BundleHistory, AdvancesOnlyWhenNodesGetSomethingElse) {
  ObjectSet set = Put({}, "a", MakeSpec("1"));
  BundleHistory history(set);
  EXPECT_FALSE(history.Advance(set));
  auto server_only = MakeSpec("2");
  server_only->for_nodes = false;
  set = Put(set, "server", server_only);
  EXPECT_FALSE(history.Advance(set));
  set = Put(set, "a", MakeSpec("2"));
  EXPECT_TRUE(history.Advance(set));
  EXPECT_EQ(history.version(), set.node_version());
}

TEST(BundleHistory, KeepsTheLastVersionsForThoseWhoComeBack) {
  ObjectSet set = Put({}, "a", MakeSpec("0"));
  BundleHistory history(set);
  std::vector<uint64_t> versions = {history.version()};
  for (int i = 1; i <= 9; ++i) {
    set = Put(set, "a", MakeSpec(std::to_string(i)));
    history.Advance(set);
    versions.push_back(history.version());
  }
  EXPECT_EQ(history.KnownTo(versions[1], {}), nullptr);
  const auto oldest = history.KnownTo(versions[2], {});
  ASSERT_NE(oldest, nullptr);
  EXPECT_EQ(oldest->entries.at("Fake/a"), "2");
  EXPECT_EQ(history.KnownTo(versions[9], {}), history.For({}));
  EXPECT_EQ(history.KnownTo(0, {}), nullptr);
  EXPECT_EQ(history.KnownTo(versions[9] + 1, {}), nullptr);
}

TEST(BundleHistory, TrustsNoVersionWhoseEntriesDependOnLabels) {
  ObjectSet set = Put({}, "zoned", For("3", {{"zone", "2"}}));
  BundleHistory history(set);
  EXPECT_EQ(history.KnownTo(history.version(), {{"zone", "2"}}), nullptr)
      << "the node may have borne other labels when it got that version";
}

TEST(BundleHistory, AServerWithoutPolicyStillHasABundle) {
  BundleHistory history((ObjectSet()));
  EXPECT_EQ(*history.For({}), (Bundle{1, {}}));
}

// Bytes decide, not how many there are: a delta is never more than the full bundle, which has a
// limit.
TEST(DeltaFrom, IsNeverLargerThanAFullBundle) {
  Bundle from{6, {}};
  Bundle to{7, {}};
  for (int i = 0; i < 100; ++i) {
    from.entries[std::to_string(i) + std::string(200, 'x')] = "1";
    to.entries[std::to_string(i)] = "1";
  }
  EXPECT_TRUE(DeltaFrom(&from, to).full);
  Bundle next = to;
  next.version = 8;
  next.entries["0"] = "2";
  EXPECT_FALSE(DeltaFrom(&to, next).full);
}

}  // namespace
}  // namespace spoke::ipam
