#include "admin-cli/node/label_selector.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::ctl {
namespace {

using testing::HasSubstr;
using Kind = LabelRequirement::Kind;

bool Has(const std::string& selector, const std::map<std::string, std::string>& labels) {
  const auto parsed = ParseLabelSelector(selector);
  EXPECT_TRUE(parsed.ok()) << selector << ": " << parsed.status();
  if (!parsed.ok()) return false;
  return Matches(*parsed, [&](const std::string& key) {
    const auto found = labels.find(key);
    return found == labels.end() ? nullptr : &found->second;
  });
}

TEST(LabelSelectorTest, IsReadAsKubectlReadsIt) {
  const std::vector<std::pair<std::string, LabelSelector>> cases = {
      {"zone=1", {{"zone", Kind::kIn, {"1"}}}},
      {"zone==1", {{"zone", Kind::kIn, {"1"}}}},
      {"zone!=1", {{"zone", Kind::kNotIn, {"1"}}}},
      {" zone = 1 , gpu", {{"zone", Kind::kIn, {"1"}}, {"gpu", Kind::kExists, {}}}},
      {"zone=", {{"zone", Kind::kIn, {""}}}},
      {"!kubernetes.io/arch", {{"kubernetes.io/arch", Kind::kAbsent, {}}}},
      {"zone in (1, 2),gpu notin(h100)",
       {{"zone", Kind::kIn, {"1", "2"}}, {"gpu", Kind::kNotIn, {"h100"}}}},
      {"in=in", {{"in", Kind::kIn, {"in"}}}},
  };
  for (const auto& [text, want] : cases) {
    const auto got = ParseLabelSelector(text);
    ASSERT_TRUE(got.ok()) << text << ": " << got.status();
    EXPECT_EQ(*got, want) << text;
    EXPECT_EQ(ParseLabelSelector(PrintLabelSelector(*got)).value(), want) << text;
  }
}

TEST(LabelSelectorTest, RefusesWhatItDoesNotUnderstand) {
  for (const char* wrong : {"",       ",",          "a=1,",       "a=b=c",   "a===b",
                            "a!==b",  "=1",         "!=1",        "!",       "a b",
                            "a in",   "a in 1",     "a in (1",    "a in 1)", "a within (1)",
                            "in (1)", "a in (1) b", "a in ((1))", "a>1",     "a!b",
                            "!a=1",   "/a=1",       "a/=1",       "a/b/c",   "a='1'"}) {
    const auto got = ParseLabelSelector(wrong);
    EXPECT_EQ(got.status().code(), absl::StatusCode::kInvalidArgument) << wrong;
    EXPECT_THAT(got.status().message(), HasSubstr("is none of KEY=VALUE")) << wrong;
  }
  EXPECT_FALSE(ParseLabelSelector("a=" + std::string(64, 'x')).ok()) << "no label is as long";
}

TEST(LabelSelectorTest, MeetsAsKubernetesDoes) {
  const std::map<std::string, std::string> labels = {{"zone", "1"}, {"gpu", ""}};
  for (const char* yes : {"zone=1", "zone in (2,1)", "zone!=2", "zone notin (2,3)", "zone",
                          "gpu=", "!spot", "spot!=1", "spot notin (1)", "zone=1,gpu,!spot"}) {
    EXPECT_TRUE(Has(yes, labels)) << yes;
  }
  for (const char* no : {"zone=2", "zone in (2,3)", "zone!=1", "zone notin (1)", "!zone", "spot",
                         "spot=", "spot in (1)", "gpu=1", "zone=1,spot"}) {
    EXPECT_FALSE(Has(no, labels)) << no;
  }
}

}  // namespace
}  // namespace spoke::ctl
