// Tests of the pure parts: times and spelling, help, completion, diffs, and pools as objects.
#include <random>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "admin-cli/command.h"
#include "admin-cli/completion.h"
#include "admin-cli/help_text.h"
#include "admin-cli/output/unified_diff.h"
#include "admin-cli/pool/pool_object.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::ctl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ParseDuration, TakesUnitsOrSeconds) {
  EXPECT_EQ(*ParseDuration("90"), absl::Seconds(90));
  EXPECT_EQ(*ParseDuration("5m"), absl::Minutes(5));
  EXPECT_EQ(*ParseDuration("1h30m"), absl::Minutes(90));
  EXPECT_EQ(*ParseDuration("2d"), absl::Hours(48));
  EXPECT_EQ(*ParseDuration("100ms"), absl::Milliseconds(100));
  EXPECT_EQ(*ParseDuration("0.5s"), absl::Milliseconds(500));
  EXPECT_EQ(*ParseDuration("1.5h"), absl::Minutes(90));
  for (const char* wrong : {"",
                            "0",
                            "0s",
                            "-1s",
                            "5 m",
                            "m",
                            "1h30",
                            "5x",
                            "99999999999999999999",
                            "9999999d",
                            "inf",
                            "0.5",
                            ".5s",
                            "-1.5s",
                            "0ms",
                            "0.1ms",
                            "ms",
                            "1.5x",
                            "99999999999999999ms",
                            "5us"}) {
    EXPECT_EQ(ParseDuration(wrong).status().code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
}

TEST(ParseTime, TakesATimeOrHowLongAgo) {
  const absl::Time now = absl::FromUnixSeconds(1'700'000'000);
  EXPECT_EQ(*ParseTime("2023-11-14T22:13:20Z", now), now);
  EXPECT_EQ(*ParseTime("2023-11-14T23:13:20+01:00", now), now);
  EXPECT_EQ(*ParseTime("2h", now), now - absl::Hours(2));
  for (const char* wrong : {"", "noon", "2023-11-14", "infinite-future"}) {
    EXPECT_EQ(ParseTime(wrong, now).status().code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
}

TEST(Nearest, FindsTypingMistakesAndNothingElse) {
  const std::vector<std::string> words = {"list", "show", "status", "ip"};
  EXPECT_EQ(Nearest("lst", words), "list");
  EXPECT_EQ(Nearest("stauts", words), "status");
  EXPECT_EQ(Nearest("quarantine", words), "");
  EXPECT_EQ(Nearest("xy", words), "");
  EXPECT_EQ(Nearest("pods", {"logs", "pool", "ports"}), "");
  EXPECT_EQ(Nearest("nodez", {"node"}), "node");
  EXPECT_EQ(Nearest("vison", {"vision"}), "vision");
  EXPECT_EQ(Nearest("visoin", {"vision"}), "vision") << "two mistakes in six letters";
  EXPECT_EQ(Nearest("x", {"y"}), "");
  EXPECT_EQ(Nearest("", words), "");
}

Command SmallTree() {
  return {.name = "spokectl",
          .summary = "a tree for tests",
          .options = {{.name = "output",
                       .value = "FORM",
                       .help = "How to print",
                       .choices = {"table", "json"},
                       .fallback = "table",
                       .letter = 'o'}},
          .commands = {{.name = "node",
                        .summary = "Nodes",
                        .commands = {{.name = "show",
                                      .summary = "One - or.more",
                                      .description = ".starts with a dot\n  as it is\nend",
                                      .positionals = {{.name = "node",
                                                       .value = "NODE",
                                                       .help = "Which",
                                                       .values = Values::kNode,
                                                       .repeated = true,
                                                       .required = true}},
                                      .options = {{.name = "file",
                                                   .value = "FILE",
                                                   .help = "Where",
                                                   .values = Values::kFile,
                                                   .letter = 'f'},
                                                  {.name = "force", .help = "Really"}}}}},
                       {.name = "secret", .hidden = true}}};
}

std::vector<std::string> Words(const Completion& completion) {
  std::vector<std::string> words;
  for (const Candidate& candidate : completion.candidates) words.push_back(candidate.word);
  return words;
}

TEST(Complete, KnowsWhereTheCursorIs) {
  const Command tree = SmallTree();
  const auto at = [&](std::vector<std::string> words) { return Complete(tree, words); };
  EXPECT_THAT(Words(at({""})), ElementsAre("node"));
  EXPECT_THAT(Words(at({})), ElementsAre("node"));
  EXPECT_THAT(Words(at({"no"})), ElementsAre("node"));
  EXPECT_THAT(Words(at({"node", ""})), ElementsAre("show"));
  EXPECT_THAT(Words(at({"-o", ""})), ElementsAre("table", "json"));
  EXPECT_THAT(Words(at({"--output=j"})), ElementsAre("--output=json"));
  EXPECT_THAT(Words(at({"node", "show", "--"})),
              ElementsAre("--file", "--force", "--help", "--output"));
  EXPECT_EQ(at({"node", "show", ""}).values, Values::kNode);
  EXPECT_EQ(at({"node", "show", "a", "b", "c"}).values, Values::kNode) << "it repeats";
  EXPECT_EQ(at({"node", "show", "-f", "x"}).values, Values::kFile);
  EXPECT_EQ(at({"node", "show", "--force", ""}).values, Values::kNode) << "a switch takes no value";
  EXPECT_EQ(at({"node", "show", "-f", "x", ""}).values, Values::kNode);
  EXPECT_EQ(at({"node", "show", "--", "-"}).values, Values::kNode);
  EXPECT_THAT(Words(at({"house", ""})), ElementsAre()) << "no such command";
  EXPECT_THAT(Words(at({"--nonsense=x"})), ElementsAre());
}

TEST(FormatCompletion, HasAWordALineAndTheDirectiveLast) {
  EXPECT_EQ(FormatCompletion({{"node", "Nodes"}, {"ip", ""}}, false), "node\tNodes\nip\n:\n");
  EXPECT_EQ(FormatCompletion({}, true), ":files\n");
}

TEST(HelpText, SaysHowAParameterIsGiven) {
  const Command tree = SmallTree();
  const Command& node = *tree.commands.begin();
  const std::string help = HelpText({&tree, &node, node.commands.begin()});
  EXPECT_THAT(help, HasSubstr("Usage: spokectl node show [OPTION]... NODE...\n"));
  EXPECT_THAT(help, HasSubstr("-f, --file FILE"));
  EXPECT_THAT(help, HasSubstr("    --force"));
  EXPECT_THAT(HelpText({&tree}), testing::Not(HasSubstr("secret")));
  EXPECT_THAT(HelpText({&tree}), HasSubstr("How to print: table, json (default table)"));
}

TEST(Wrap, BreaksBetweenWordsOnly) {
  EXPECT_EQ(Wrap("aa bb cc", 5, 2), "aa bb\n  cc");
  EXPECT_EQ(Wrap("a long-word", 4, 0), "a\nlong-word");
  EXPECT_EQ(Wrap("a\n  b c\nd", 20, 1), "a\n   b c\n d");
  EXPECT_EQ(Wrap("", 10, 2), "");
}

TEST(ManualPage, EscapesWhatRoffWouldObey) {
  const Command tree = SmallTree();
  const std::string page = ManualPage({&tree, tree.commands.begin()}, "1.2.3");
  EXPECT_THAT(page, HasSubstr("\n\\&.starts with a dot\n"));
  EXPECT_THAT(page, HasSubstr(".nf\n  as it is\n.fi\nend\n"));
  EXPECT_THAT(page, HasSubstr("\\-\\-file FILE"));
  EXPECT_THAT(page, HasSubstr("Spoke 1.2.3"));
  EXPECT_EQ(ManualPageName({&tree, tree.commands.begin()}), "spokectl-node.1");
}

TEST(PoolObject, LeavesOutWhatIsEmptyAndQuotesTheRest) {
  EXPECT_EQ(PoolYaml({.name = "a", .cidr = "10.0.0.0/16"}),
            "apiVersion: spoke/v1\nkind: Pool\nmetadata:\n  name: \"a\"\nspec:\n"
            "  cidr: \"10.0.0.0/16\"\n");
  EXPECT_THAT(PoolYaml({.name = "a: b\n", .cidr = "x"}), HasSubstr("name: \"a: b\\n\"\n"));
}

TEST(PoolObject, AnotherBlockChangesOneLine) {
  const std::string yaml =
      "kind: Pool\nmetadata:\n  labels:\n    cidr: no\n  name: a\nspec:\n  vnet: v\n  cidr: "
      "10.0.0.0/16\n  nodeLabels:\n    cidr: no\n";
  EXPECT_EQ(*WithCidr(yaml, "10.0.0.0/15"),
            "kind: Pool\nmetadata:\n  labels:\n    cidr: no\n  name: a\nspec:\n  vnet: v\n  cidr: "
            "\"10.0.0.0/15\"\n  nodeLabels:\n    cidr: no\n");
  EXPECT_FALSE(WithCidr("kind: Pool\nspec:\n  vnet: v\n", "10.0.0.0/15").ok());
}

constexpr const char* kBefore = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\n";

TEST(UnifiedDiff, IsWhatDiffWrites) {
  const DiffNames names = {"old", "new"};
  EXPECT_EQ(UnifiedDiff(kBefore, kBefore, names, false), "");
  EXPECT_EQ(UnifiedDiff("a\n", "a", names, false), "");
  EXPECT_EQ(UnifiedDiff("", "a\n", names, false), "--- old\n+++ new\n@@ -0,0 +1 @@\n+a\n");
  EXPECT_EQ(UnifiedDiff("a\n", "", names, false), "--- old\n+++ new\n@@ -1 +0,0 @@\n-a\n");
  EXPECT_EQ(UnifiedDiff(kBefore, "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nm\n", names, false),
            "--- old\n+++ new\n@@ -9,4 +9,4 @@\n i\n j\n k\n-l\n+m\n");
  EXPECT_EQ(UnifiedDiff(kBefore, "x\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nm\n", names, false),
            "--- old\n+++ new\n@@ -1,4 +1,4 @@\n-a\n+x\n b\n c\n d\n"
            "@@ -9,4 +9,4 @@\n i\n j\n k\n-l\n+m\n");
  EXPECT_EQ(UnifiedDiff("a\n", "b\n", names, true),
            "\x1b[1m--- old\x1b[0m\n\x1b[1m+++ new\x1b[0m\n\x1b[36m@@ -1 +1 @@\x1b[0m\n"
            "\x1b[31m-a\x1b[0m\n\x1b[32m+b\x1b[0m\n");
}

// Returns `text` with `diff` applied; empty when it does not fit.
std::string Patch(const std::string& text, const std::string& diff) {
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  std::vector<std::string> out;
  size_t at = 0;
  for (const std::string& line :
       std::vector<std::string>(absl::StrSplit(diff, '\n', absl::SkipEmpty()))) {
    if (line.starts_with("---") || line.starts_with("+++")) continue;
    if (line.starts_with("@@")) {
      const size_t first = std::stoul(line.substr(4));
      const bool empty = line.substr(4, line.find(' ', 4) - 4).ends_with(",0");
      while (at + (empty ? 0 : 1) < first) out.push_back(lines.at(at++));
    } else if (line[0] == '+') {
      out.push_back(line.substr(1));
    } else {
      EXPECT_EQ(lines.at(at), line.substr(1));
      if (line[0] == ' ') out.push_back(lines.at(at));
      ++at;
    }
  }
  while (at < lines.size()) out.push_back(lines[at++]);
  return out.empty() ? "" : absl::StrJoin(out, "\n") + "\n";
}

TEST(UnifiedDiff, AppliedToOneTextItGivesTheOther) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto text = [&](size_t letters) {
    std::string made;
    for (size_t lines = random() % 40; lines > 0; --lines) {
      made += std::string(1, static_cast<char>('a' + random() % letters)) + "\n";
    }
    return made;
  };
  for (int i = 0; i < 2000; ++i) {
    const size_t letters = 2 + random() % 20;
    const std::string before = text(letters);
    const std::string after = text(letters);
    ASSERT_EQ(Patch(before, UnifiedDiff(before, after, {"old", "new"}, false)), after) << before;
  }
}

TEST(UnifiedDiff, TextsThatHaveNothingInCommonAreStillADiff) {
  std::string before;
  std::string after;
  for (int i = 0; i < 1500; ++i) {
    before += "b" + std::to_string(i) + "\n";
    after += "a" + std::to_string(i) + "\n";
  }
  EXPECT_EQ(Patch(before, UnifiedDiff(before, after, {"old", "new"}, false)), after);
}

}  // namespace
}  // namespace spoke::ctl
