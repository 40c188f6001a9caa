#include "ipam-server/policy/policy_file.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

using ::testing::ElementsAre;

const std::string kTeam =
    "apiVersion: spoke/v1\nkind: Team\nmetadata:\n  name: vision\nspec:\n  namespaces: [a]\n";

std::vector<PolicyFileText> File(std::string text) { return {{"f", std::move(text)}}; }

// All problems, one line each.
std::string ProblemsOf(const std::vector<PolicyFileText>& files) {
  const ParsedFiles parsed = ParsePolicyFiles(files);
  return std::string(base::MessageOf(ToStatus(parsed.problems, parsed.files)));
}

TEST(ParsePolicyFiles, ReadsAllDocumentsOfAllFilesInOrder) {
  const ParsedFiles parsed = ParsePolicyFiles(std::vector<PolicyFileText>{
      {"one.yaml", "# c\n---\n" + kTeam},
      {"two.yaml", kTeam +
                       "---\napiVersion: spoke/v1\nkind: Pool\nmetadata: {name: p}\nspec: {cidr: "
                       "10.0.0.0/8}\n"}});
  EXPECT_TRUE(parsed.problems.empty());
  EXPECT_THAT(parsed.files, ElementsAre("one.yaml", "two.yaml"));
  ASSERT_EQ(parsed.objects.size(), 3U);
  EXPECT_EQ(parsed.objects[0].key, (ObjectKey{"Team", "vision"}));
  EXPECT_EQ(parsed.objects[0].name_line, 6);
  EXPECT_EQ(parsed.objects[0].spec_line, 7);
  EXPECT_EQ(parsed.objects[2].key, (ObjectKey{"Pool", "p"}));
  EXPECT_EQ(parsed.objects[2].file, "two.yaml");
  EXPECT_EQ(parsed.objects[2].name_line, 10);
  EXPECT_EQ(parsed.objects[2].spec_line, 11);
  ASSERT_NE(parsed.objects[2].spec, nullptr);
}

TEST(ParsePolicyFiles, SaysWhatTheFrameOfAnObjectLacks) {
  EXPECT_EQ(ProblemsOf(File("a: 1\n")),
            "f:1: apiVersion: is missing: write spoke/v1\n"
            "f:1: kind: is missing: write one of BandwidthBudget, BandwidthLimit, "
            "ClusterNetwork, DestinationGroup, EgressPolicy, NodeRemedy, "
            "Pool, Team\n"
            "f:1: metadata: is required but missing\n"
            "f:1: a: unknown key; known here: apiVersion, kind, metadata, spec");
  EXPECT_EQ(
      ProblemsOf(File("apiVersion: v1\nkind: Pod\nmetadata: {name: A, uid: 1}\nspec: {x: 1}\n")),
      "f:1: apiVersion: must be spoke/v1, the only one this server knows, not \"v1\"\n"
      "f:2: kind: \"Pod\" is no kind this server knows: those are BandwidthBudget, BandwidthLimit, "
      "ClusterNetwork, "
      "DestinationGroup, EgressPolicy, NodeRemedy, Pool, Team\n"
      "f:3: metadata.name: must be 1 to 63 of a-z, 0-9 and '-', with no '-' at either end, "
      "not \"A\"\n"
      "f:3: metadata.uid: unknown key; known here: name");
  EXPECT_EQ(ProblemsOf(File("apiVersion: spoke/v1\nkind: Pool\nmetadata: {name: a}\n")),
            "f:1: spec: is required but missing");
}

TEST(ParsePolicyFiles, OneBrokenDocumentDoesNotHideTheOthers) {
  const ParsedFiles parsed =
      ParsePolicyFiles(File(kTeam + "extra: 1\n---\n" + kTeam + "---\nnot: [closed\n"));
  ASSERT_EQ(parsed.objects.size(), 2U);
  EXPECT_EQ(parsed.objects[0].spec, nullptr) << "what has mistakes does not count";
  EXPECT_NE(parsed.objects[1].spec, nullptr);
  ASSERT_GE(parsed.problems.size(), 2U);
  EXPECT_EQ(parsed.problems[0].line, 7);
  EXPECT_GE(parsed.problems[1].line, 16);
}

TEST(ParsePolicyFiles, AFileOf10MiBIsRefusedByItsSize) {
  EXPECT_EQ(ProblemsOf(File(std::string(10 << 20, '#'))),
            "f:1: the file has 10485760 bytes, and a policy file may have 1048576: split it into "
            "several");
}

TEST(ParsePolicyFiles, NothingGivenIsAProblem) {
  EXPECT_EQ(ProblemsOf(File("# nothing\n")), "f:1: the file is empty");
  EXPECT_EQ(ProblemsOf({}), "no policy file was given: name one, or a directory");
}

TEST(ParsePolicyFiles, AListTooLongIsOneMistake) {
  std::string text =
      "apiVersion: spoke/v1\nkind: Team\nmetadata: {name: a}\nspec:\n  namespaces:\n";
  for (int i = 0; i < 4200; ++i) text += "    - n" + std::to_string(i) + "\n";
  EXPECT_EQ(ProblemsOf(File(text)),
            "f:4102: spec.namespaces[4096]: is one more than the 4096 items allowed: make two "
            "objects of it");
}

TEST(ParseObjectKeys, DoesNotLookAtSpecs) {
  const auto keys = ParseObjectKeys(
      File("apiVersion: spoke/v1\nkind: Pool\nmetadata: {name: a}\nspec: {no: longer, allowed: 1}\n"
           "---\napiVersion: spoke/v1\nkind: Team\nmetadata: {name: b}\n"));
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_THAT(*keys, ElementsAre(ObjectKey{"Pool", "a"}, ObjectKey{"Team", "b"}));
  EXPECT_EQ(ParseObjectKeys(File("kind: Pool\n")).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ParseSpec, HoldsStoredSpecsToTheSameRules) {
  EXPECT_TRUE(ParseSpec({"Team", "a"}, "{\"namespaces\":[\"x\"]}").ok());
  EXPECT_FALSE(ParseSpec({"Team", "a"}, "{\"namespaces\":[]}").ok());
  EXPECT_FALSE(ParseSpec({"Team", "A"}, "{\"namespaces\":[\"x\"]}").ok());
  EXPECT_FALSE(ParseSpec({"Other", "a"}, "{}").ok());
  EXPECT_FALSE(ParseSpec({"Team", "a"}, "").ok());
  EXPECT_FALSE(ParseSpec({"Team", "a"}, "[]").ok());
}

}  // namespace
}  // namespace spoke::ipam
