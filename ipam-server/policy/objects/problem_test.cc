#include "ipam-server/policy/objects/problem.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/policy/objects/object.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

TEST(ToStatus, OrdersByFileThenLine) {
  const absl::Status status = ToStatus({{"", 0, "Pool \"a\"", "four", true},
                                        {"b", 1, "", "three", true},
                                        {"a", 9, "x.y", "two", true},
                                        {"a", 3, "x", "one", false}},
                                       {"a", "b"});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(base::MessageOf(status), "a:3: x: one\na:9: x.y: two\nb:1: three\nPool \"a\": four");
}

TEST(ToStatus, OnlyConflictsAreAFailedPrecondition) {
  EXPECT_TRUE(ToStatus({}, {}).ok());
  EXPECT_EQ(ToStatus({{"a", 1, "", "x", true}}, {}).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ToStatus({{"a", 1, "", "x", false}}, {}).code(), absl::StatusCode::kInvalidArgument);
}

TEST(ToStatus, CountsWhatItDoesNotShow) {
  const std::vector<Problem> many(kMaxProblems + 7, {"a", 1, "", "x", false});
  EXPECT_THAT(std::string(base::MessageOf(ToStatus(many, {"a"}))),
              testing::EndsWith("\nand 7 more"));
}

TEST(CheckLabel, TakesLabelsOfRfc1123) {
  for (const char* name : {"a", "0", "a-b", "team-7", "x--y"}) EXPECT_TRUE(CheckLabel(name).ok());
  EXPECT_TRUE(CheckLabel(std::string(63, 'a')).ok());
  for (const char* name : {"", "-a", "a-", "A", "a.b", "a_b", "a b", "\xc3\xbc"}) {
    EXPECT_FALSE(CheckLabel(name).ok()) << name;
  }
  EXPECT_FALSE(CheckLabel(std::string(64, 'a')).ok());
}

TEST(BearsLabels, AllThatAreWanted) {
  const NodeLabels labels = {{"zone", "2"}, {"gpu", "h100"}};
  EXPECT_TRUE(BearsLabels(labels, {}));
  EXPECT_TRUE(BearsLabels(labels, {{"zone", "2"}}));
  EXPECT_FALSE(BearsLabels(labels, {{"zone", "1"}}));
  EXPECT_FALSE(BearsLabels(labels, {{"zone", "2"}, {"rack", "1"}}));
}

}  // namespace
}  // namespace spoke::ipam
