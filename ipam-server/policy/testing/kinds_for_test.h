// What the tests of kinds have in common: documents, plans of them, and the table of what is
// refused. Tests only.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ipam-server/policy/policy_file.h"
#include "proto/spoke/v1/policy.pb.h"

namespace spoke::ipam {

// When every plan is made.
inline absl::Time KindsTime() { return absl::FromUnixMillis(1'700'000'000'000); }

// One document; `spec` in flow style stands on line 4.
inline std::string Document(const std::string& kind, const std::string& name,
                            const std::string& spec) {
  return "apiVersion: spoke/v1\nkind: " + kind + "\nmetadata: {name: " + name + "}\nspec: " + spec +
         "\n";
}

// `text` is the file "f".
inline absl::StatusOr<ApplyPlan> Plan(const ObjectSet& set, const std::string& text,
                                      const PolicyWorld& world = {}) {
  return PlanApply(set, ParsePolicyFiles(std::vector<PolicyFileText>{{"f", text}}), world,
                   KindsTime());
}

inline ObjectSet Applied(const std::string& text) {
  const auto plan = Plan({}, text);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? plan->next : ObjectSet();
}

// What nodes get of the object; an entry without a key when it is not there or not for them.
inline v1::PolicyEntry EntryOf(const ObjectSet& set, const ObjectKey& key) {
  v1::PolicyEntry entry;
  const auto object = set.Find(key);
  const auto value = object == nullptr ? std::nullopt : object->spec->ForNodes(key);
  EXPECT_TRUE(value && entry.ParseFromString(value->value)) << key.ToString();
  return entry;
}

struct Refused {
  const char* name;
  const char* kind;
  const char* spec;
  const char* want;  // All mistakes.
};
inline std::ostream& operator<<(std::ostream& out, const Refused& c) { return out << c.name; }

// The one test of it is in kinds_test.cc; files of tests instantiate it with their kinds' cases.
class RefusedSpecTest : public testing::TestWithParam<Refused> {};

inline std::string NameOfCase(const testing::TestParamInfo<Refused>& test) {
  return test.param.name;
}

}  // namespace spoke::ipam
