#include "ipam-server/operators/policy_versions.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/operators/operator_keys.h"
#include "ipam-server/policy/policy_file.h"
#include "ipam-server/store/testing/memory_store.h"

namespace spoke::ipam {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string Pool(const std::string& name, const std::string& cidr) {
  return "apiVersion: spoke/v1\nkind: Pool\nmetadata: {name: " + name + "}\nspec: {cidr: " + cidr +
         "}\n";
}

class PolicyVersionsTest : public testing::Test {
 protected:
  void Store(const absl::StatusOr<ApplyPlan>& plan) {
    ASSERT_TRUE(plan.ok()) << plan.status();
    std::vector<CompareAndPut> puts;
    for (PolicyWrite& write : EncodeFormer(*plan, set_.version())) {
      puts.push_back({.key = std::move(write.key), .value = std::move(write.value)});
    }
    ASSERT_TRUE(store_.Commit(puts).ok());
    set_ = plan->next;
  }
  void Apply(const std::string& yaml) {
    now_ += absl::Seconds(1);
    Store(PlanApply(set_, ParsePolicyFiles(std::vector<PolicyFileText>{{"f", yaml}}), {}, now_));
  }
  void Delete(const std::string& name) {
    now_ += absl::Seconds(1);
    Store(PlanDelete(set_, std::vector<ObjectKey>{{"Pool", name}}, {}, now_));
  }
  // The names and blocks in force.
  static std::vector<std::string> Pools(const ObjectSet& set) {
    std::vector<std::string> pools;
    for (const auto& [key, object] : set.objects()) {
      const std::string json = object->spec->ToJson();
      const size_t at = json.find("10.");
      pools.push_back(key.name + " " + json.substr(at, json.find('"', at) - at));
    }
    return pools;
  }
  std::vector<std::string> PoolsAfterUndo(uint64_t to) {
    const auto way = FindWayBack(store_, set_.version(), to);
    EXPECT_TRUE(way.ok()) << way.status();
    if (!way.ok()) return {};
    const auto plan = PlanApply(set_, way->objects, {}, now_ + absl::Seconds(1), way->gone);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? Pools(plan->next) : std::vector<std::string>();
  }

  MemoryStore store_;
  ObjectSet set_;
  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
};

TEST_F(PolicyVersionsTest, GoingBackGivesWhatWasThere) {
  std::vector<uint64_t> versions = {set_.version()};
  std::vector<std::vector<std::string>> before = {Pools(set_)};
  const auto remember = [&] {
    versions.push_back(set_.version());
    before.push_back(Pools(set_));
  };
  Apply(Pool("a", "10.1.0.0/24") + "---\n" + Pool("b", "10.2.0.0/24"));
  remember();
  Apply(Pool("a", "10.3.0.0/24"));
  remember();
  Delete("b");
  remember();
  Apply(Pool("b", "10.1.0.0/24"));  // The block that a had.
  for (size_t i = 0; i < versions.size(); ++i) {
    EXPECT_EQ(PoolsAfterUndo(versions[i]), before[i]) << i;
  }
  EXPECT_EQ(PoolsAfterUndo(0), before.back()) << "the version before the present one";
  const auto back = VersionsToGoBackTo(store_, set_.version());
  ASSERT_TRUE(back.ok());
  EXPECT_THAT(*back, ElementsAre(versions[3], versions[2], versions[1], versions[0]));
}

TEST_F(PolicyVersionsTest, WhatIsNotKeptIsRefusedWithWhatIs) {
  EXPECT_THAT(std::string(FindWayBack(store_, 1, 0).status().message()),
              HasSubstr("nothing can be undone"));
  Apply(Pool("a", "10.1.0.0/24"));
  const uint64_t first = set_.version();
  Apply(Pool("a", "10.2.0.0/24"));
  const auto unknown = FindWayBack(store_, set_.version(), 77);
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(unknown.status().message()),
              HasSubstr("one can go back to " + std::to_string(first) + ", 1 "));
}

TEST_F(PolicyVersionsTest, LargeChangesAreInPiecesThatAStoreTakes) {
  std::string yaml;
  for (int i = 0; i < 4000; ++i) {
    const std::string name = "a-pool-with-a-name-of-some-fifty-letters-" + std::to_string(i);
    yaml += Pool(name, "10." + std::to_string(i / 256) + "." + std::to_string(i % 256) + ".0/24");
    yaml += "---\n";
  }
  Apply(yaml);
  std::vector<ObjectKey> all;
  for (const auto& [key, object] : set_.objects()) all.push_back(key);
  Store(PlanDelete(set_, all, {}, now_ += absl::Seconds(1)));
  int pieces = 0;
  ASSERT_TRUE(store_
                  .List(PolicyHistoryPrefix(set_.version()),
                        [&](std::string_view, const StoredRecord& record) {
                          ++pieces;
                          EXPECT_LT(record.value.size(), size_t{400} << 10);
                        })
                  .ok());
  EXPECT_GT(pieces, 1);
  EXPECT_THAT(PoolsAfterUndo(0), testing::SizeIs(4000));
}

TEST_F(PolicyVersionsTest, AChangeOfNothingLeavesNothing) {
  Apply(Pool("a", "10.1.0.0/24"));
  const auto same = PlanApply(
      set_, ParsePolicyFiles(std::vector<PolicyFileText>{{"f", Pool("a", "10.1.0.0/24")}}), {},
      now_);
  ASSERT_TRUE(same.ok());
  EXPECT_THAT(EncodeFormer(*same, set_.version()), IsEmpty());
}

TEST_F(PolicyVersionsTest, WhatIsNamedByOthersDoesNotGo) {
  Apply("apiVersion: spoke/v1\nkind: Team\nmetadata: {name: t}\nspec: {namespaces: [web]}\n");
  Apply(
      "apiVersion: spoke/v1\nkind: BandwidthLimit\nmetadata: {name: l}\nspec: {teams: [t], "
      "perNode: {ingress: 1Gbit}}\n");
  const std::vector<ObjectKey> gone = {{"Team", "t"}};
  const auto plan = PlanApply(set_, ParsedFiles(), {}, now_, gone);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kFailedPrecondition) << plan.status();
}

}  // namespace
}  // namespace spoke::ipam
