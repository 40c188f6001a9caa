#include "ipam-server/policy/object_codec.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/policy/policy_file.h"
#include "lib/base/status.h"
#include "proto/spoke/v1/object.pb.h"

namespace spoke::ipam {
namespace {

using ::testing::HasSubstr;

const absl::Time kNow = absl::FromUnixMillis(1'700'000'000'123);

ApplyPlan Plan(const ObjectSet& set, const std::string& text) {
  const auto plan =
      PlanApply(set, ParsePolicyFiles(std::vector<PolicyFileText>{{"f", text}}), {}, kNow);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *plan;
}

std::string Team(const std::string& name, const std::string& space) {
  return "---\napiVersion: spoke/v1\nkind: Team\nmetadata: {name: " + name +
         "}\nspec: {namespaces: [" + space + "]}\n";
}

// What a store would hold after `plan`, and what a server would read from it.
void Store(const ApplyPlan& plan, std::map<std::string, std::string>& records) {
  for (const PolicyWrite& write : EncodePlan(plan)) {
    if (write.value) {
      records[write.key] = *write.value;
    } else {
      EXPECT_EQ(records.erase(write.key), 1U) << write.key;
    }
  }
}

ObjectSet Load(const std::map<std::string, std::string>& records) {
  std::vector<PolicyObject> objects;
  SetVersion version;
  for (const auto& [key, value] : records) {
    if (key == kPolicyVersionKey) {
      version = *DecodePolicyVersion(value);
      continue;
    }
    auto object = DecodeObject(value);
    EXPECT_TRUE(object.ok()) << object.status();
    EXPECT_EQ(StoreKeyOf(object->key), key);
    objects.push_back(*std::move(object));
  }
  auto set = ObjectSet::Restore(std::move(objects), version);
  EXPECT_TRUE(set.ok()) << set.status();
  return *std::move(set);
}

TEST(EncodePlan, WhatIsStoredIsWhatIsReadAfterEachChange) {
  std::map<std::string, std::string> records;
  EXPECT_EQ(Load(records).versions(), ObjectSet().versions());
  ObjectSet set;
  const std::string pool =
      "---\napiVersion: spoke/v1\nkind: Pool\nmetadata: {name: p}\nspec: {cidr: 10.0.0.0/8, "
      "nodeAddresses: {spare: 0.1}, nodeLabels: {zone: \"2\"}}\n";
  for (const std::string& text :
       {Team("a", "x") + Team("b", "y") + pool, Team("a", "z"), Team("b", "y")}) {
    const ApplyPlan plan = Plan(set, text);
    Store(plan, records);
    set = plan.next;
  }
  const auto deleted = PlanDelete(set, std::vector<ObjectKey>{{"Team", "b"}}, {}, kNow);
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  Store(*deleted, records);
  set = deleted->next;

  const ObjectSet loaded = Load(records);
  EXPECT_EQ(loaded.versions(), set.versions());
  ASSERT_EQ(loaded.objects().size(), set.objects().size());
  for (const auto& [key, object] : set.objects()) {
    const auto got = loaded.Find(key);
    ASSERT_NE(got, nullptr) << key.ToString();
    EXPECT_EQ(got->spec->ToJson(), object->spec->ToJson());
    EXPECT_EQ(got->version, object->version);
    EXPECT_EQ(got->changed, kNow);
  }
}

TEST(EncodePlan, WritesNothingWhenNothingChanges) {
  const ApplyPlan first = Plan({}, Team("a", "x"));
  EXPECT_EQ(EncodePlan(first).size(), 2U);
  EXPECT_EQ(EncodePlan(first).back().key, "policy/version");
  EXPECT_TRUE(EncodePlan(Plan(first.next, Team("a", "x"))).empty());
}

TEST(DecodeObject, NamesWhatIsDamaged) {
  EXPECT_EQ(DecodeObject("\xff\xff").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(DecodeObject("").status().code(), absl::StatusCode::kDataLoss);
  v1::StoredObject stored;
  stored.set_kind("Team");
  stored.set_name("a");
  stored.set_spec_json("{\"namespaces\":[\"x\"]}");
  EXPECT_TRUE(DecodeObject(stored.SerializeAsString()).ok());
  stored.set_spec_json("{\"namespaces\":[\"x\"],\"quota\":3}");
  auto object = DecodeObject(stored.SerializeAsString());
  EXPECT_EQ(object.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(base::MessageOf(object.status()), HasSubstr("stored Team \"a\": spec:1: quota"));
  stored.set_kind("EgressPolicy");
  object = DecodeObject(stored.SerializeAsString());
  EXPECT_EQ(object.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(base::MessageOf(object.status()), HasSubstr("written by a newer version?"));
}

TEST(DecodePolicyVersion, RefusesWhatIsNone) {
  EXPECT_EQ(DecodePolicyVersion("").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(DecodePolicyVersion("\xff").status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace spoke::ipam
