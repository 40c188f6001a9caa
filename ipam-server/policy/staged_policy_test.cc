#include "ipam-server/policy/staged_policy.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/policy/object_codec.h"
#include "ipam-server/store/testing/memory_store.h"

namespace spoke::ipam {
namespace {

using Objects = std::map<std::string, std::string>;

struct Stored {
  Objects objects;
  Revisions revisions;
};

Stored Read(Store& store) {
  Stored stored;
  const auto status = store.List("", [&](std::string_view key, const StoredRecord& record) {
    stored.revisions.emplace(key, record.revision);
    if (key.starts_with(kObjectKeyPrefix)) stored.objects.emplace(key, record.value);
  });
  EXPECT_TRUE(status.ok()) << status;
  return stored;
}

// The commit that puts `next` in force as `version`.
std::vector<CompareAndPut> Apply(const Stored& now, const Objects& next, uint64_t version) {
  const auto revision = [&](const std::string& key) {
    const auto it = now.revisions.find(key);
    return it == now.revisions.end() ? 0 : it->second;
  };
  std::vector<CompareAndPut> puts = {{"node/a", "x", revision("node/a")}};
  for (const auto& [key, value] : next) puts.push_back({key, value, revision(key)});
  for (const auto& [key, value] : now.objects) {
    if (!next.contains(key)) puts.push_back({key, std::nullopt, revision(key)});
  }
  const std::string flip(kPolicyVersionKey);
  puts.push_back(
      {flip, EncodePolicyVersion({.version = version, .node_version = 1}), revision(flip)});
  StagePolicy(puts, 1, now.revisions);
  return puts;
}

Objects Set(int count, const std::string& value) {
  Objects objects;
  for (int i = 0; i < count; ++i) objects["object/Team/t" + std::to_string(i)] = value;
  return objects;
}

// What a crash leaves that comes after `stages` of them and the first half of the next.
void CommitSome(Store& store, const std::vector<CompareAndPut>& puts, int stages) {
  std::vector<CompareAndPut> some;
  std::vector<CompareAndPut> half;
  for (const CompareAndPut& put : puts) {
    if (static_cast<int>(put.stage) < stages) some.push_back(put);
    if (static_cast<int>(put.stage) == stages) half.push_back(put);
  }
  half.resize(half.size() / 2);
  some.insert(some.end(), half.begin(), half.end());
  ASSERT_TRUE(store.Commit(some).ok());
}

TEST(StagedPolicy, AFewObjectsAreOneTransaction) {
  MemoryStore store;
  const auto puts = Apply(Read(store), Set(3, "a"), 1);
  ASSERT_EQ(puts.size(), 5U);
  EXPECT_FALSE(puts[1].joined) << "the record of a node has nothing to do with it";
  for (size_t i = 2; i < puts.size(); ++i) EXPECT_TRUE(puts[i].joined);
}

TEST(StagedPolicy, AfterACrashAnywhereAChangeIsInForceAsAWholeOrNotAtAll) {
  for (int stages = 0; stages <= 3; ++stages) {
    SCOPED_TRACE(stages);
    MemoryStore store;
    ASSERT_TRUE(store.Commit(Apply(Read(store), Set(150, "old"), 1)).ok());
    Objects next = Set(200, "new");
    for (int i = 0; i < 50; ++i) next.erase("object/Team/t" + std::to_string(i));
    CommitSome(store, Apply(Read(store), next, 2), stages);
    ASSERT_TRUE(FinishPolicy(store).ok());
    const auto version = DecodePolicyVersion(store.Get(kPolicyVersionKey)->value().value);
    // With half of the stage that has only the version, it has not happened.
    EXPECT_EQ(version->version, stages < 2 ? 1U : 2U);
    EXPECT_EQ(Read(store).objects, stages < 2 ? Set(150, "old") : next);
  }
}

// What was before the change is stored before it; what is recorded of it, with it.
TEST(StagedPolicy, TheRecordOfAChangeIsThereIfAndOnlyIfTheChangeIs) {
  for (int stages = 0; stages <= 3; ++stages) {
    SCOPED_TRACE(stages);
    MemoryStore store;
    std::vector<CompareAndPut> puts;
    for (const auto& [key, value] : Set(150, "new")) puts.push_back({key, value});
    puts.push_back({"operator-log/1", std::string("alice")});
    puts.push_back({"operator-log/2", std::string("bob")});
    puts.push_back({"policy-history/1/0", std::string("before")});
    puts.push_back(
        {std::string(kPolicyVersionKey), EncodePolicyVersion({.version = 2, .node_version = 1})});
    StagePolicy(puts, 0, {});
    const auto flip = std::find_if(puts.begin(), puts.end(), [](const CompareAndPut& put) {
      return put.key == kPolicyVersionKey;
    });
    ASSERT_LT(flip + 2, puts.end());
    EXPECT_FALSE(flip->joined);
    for (const auto log : {flip + 1, flip + 2}) {
      EXPECT_TRUE(log->key.starts_with("operator-log/")) << log->key;
      EXPECT_TRUE(log->joined && log->stage == flip->stage);
    }
    std::vector<CompareAndPut> some;
    for (const CompareAndPut& put : puts) {
      if (static_cast<int>(put.stage) < stages) some.push_back(put);
    }
    ASSERT_TRUE(store.Commit(some).ok());
    const bool in_force = store.Get(kPolicyVersionKey)->has_value();
    EXPECT_EQ(store.Get("operator-log/1")->has_value(), in_force);
    if (in_force) EXPECT_TRUE(store.Get("policy-history/1/0")->has_value());
  }
}

TEST(StagedPolicy, AChangeThatWasCutShortCanBeAppliedAgainUnderItsVersion) {
  MemoryStore store;
  ASSERT_TRUE(store.Commit(Apply(Read(store), Set(150, "old"), 1)).ok());
  CommitSome(store, Apply(Read(store), Set(200, "half"), 2), /*stages=*/1);
  ASSERT_TRUE(FinishPolicy(store).ok());
  // The clock stands still, so that the version is the same.
  const auto again = store.Commit(Apply(Read(store), Set(180, "new"), 2));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(Read(store).objects, Set(180, "new"));
}

// Chunks of one stage are stored in any order.
TEST(StagedPolicy, WhatAChangeThatWasCutShortHasLeftIsNoneOfTheNextUnderItsVersion) {
  for (const auto& [before, count] : {std::pair{2, 3}, {150, 3}, {150, 180}}) {
    SCOPED_TRACE(count);
    MemoryStore store;
    ASSERT_TRUE(store.Commit(Apply(Read(store), Set(before, "old"), 1)).ok());
    CommitSome(store, Apply(Read(store), Set(200, "half"), 2), /*stages=*/1);
    ASSERT_TRUE(FinishPolicy(store).ok());
    const auto puts = Apply(Read(store), Set(count, "new"), 2);
    const auto flip = std::find_if(puts.begin(), puts.end(), [](const CompareAndPut& put) {
      return put.key == kPolicyVersionKey;
    });
    std::vector<CompareAndPut> some;
    for (const CompareAndPut& put : puts) {
      const bool beside = put.stage == flip->stage && !put.key.starts_with(kPendingPolicyPrefix);
      if (put.stage < flip->stage || beside) some.push_back(put);
    }
    ASSERT_TRUE(store.Commit(some).ok());
    ASSERT_TRUE(FinishPolicy(store).ok());
    EXPECT_EQ(Read(store).objects, Set(count, "new"));
  }
}

TEST(StagedPolicy, WhatWasPendingGoesWithTheNextChange) {
  MemoryStore store;
  ASSERT_TRUE(store.Commit(Apply(Read(store), Set(150, "a"), 1)).ok());
  const int64_t commits = store.Stats().commits;
  ASSERT_TRUE(FinishPolicy(store).ok());
  EXPECT_EQ(store.Stats().commits, commits) << "there is nothing to finish";
  Objects next = Set(150, "a");
  next["object/Team/t1"] = "b";
  Stored now = Read(store);
  now.objects = {};  // The others stay as they are.
  const auto puts = Apply(now, {{"object/Team/t1", "b"}}, 2);
  ASSERT_TRUE(store.Commit(puts).ok());
  int pending = 0;
  ASSERT_TRUE(
      store.List(kPendingPolicyPrefix, [&](std::string_view, const StoredRecord&) { ++pending; })
          .ok());
  EXPECT_EQ(pending, 0);
  EXPECT_EQ(Read(store).objects, next);
}

}  // namespace
}  // namespace spoke::ipam
