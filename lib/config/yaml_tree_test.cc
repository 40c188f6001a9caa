#include "lib/config/yaml_tree.h"

#include <string>
#include <vector>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::config {
namespace {

using ::testing::HasSubstr;

// The first mistake as "LINE: PATH: MESSAGE", "" when there is none.
std::string FirstMistake(std::string_view text) {
  YamlNode root;
  std::vector<Mistake> mistakes;
  const bool whole = ParseYaml(text, &root, &mistakes);
  EXPECT_TRUE(whole || !mistakes.empty()) << "a refusal needs a reason";
  if (mistakes.empty()) return "";
  return std::to_string(mistakes[0].line) + ": " + mistakes[0].path + ": " + mistakes[0].message;
}

TEST(ParseYaml, KeepsLinesOrderAndQuotes) {
  YamlNode root;
  std::vector<Mistake> mistakes;
  ASSERT_TRUE(ParseYaml("# c\nb: 1\na:\n  - 'x'\n  - {y: z}\n", &root, &mistakes));
  ASSERT_EQ(root.kind, YamlKind::kMap);
  EXPECT_EQ(root.entries[0].key, "b");
  EXPECT_EQ(root.entries[0].line, 2);
  EXPECT_FALSE(root.entries[0].value.quoted);
  const YamlNode& list = root.Find("a")->value;
  ASSERT_EQ(list.items.size(), 2U);
  EXPECT_TRUE(list.items[0].quoted);
  EXPECT_EQ(list.items[0].line, 4);
  EXPECT_EQ(list.items[1].Find("y")->line, 5);
  EXPECT_EQ(root.Find("absent"), nullptr);
}

TEST(ParseYaml, TakesBlocksOfText) {
  YamlNode root;
  std::vector<Mistake> mistakes;
  ASSERT_TRUE(ParseYaml("a: |\n  one\n  two\nb: >-\n  three\n  four\n", &root, &mistakes));
  EXPECT_EQ(root.Find("a")->value.text, "one\ntwo\n");
  EXPECT_EQ(root.Find("b")->value.text, "three four");
}

TEST(ParseYaml, TakesOneDocumentWithItsMarkers) {
  EXPECT_EQ(FirstMistake("---\na: 1\n...\n"), "");
  EXPECT_EQ(FirstMistake("%YAML 1.2\n---\na: 1\n"), "");
  EXPECT_EQ(FirstMistake("a: 1\r\nb: 2\r\n"), "");
}

TEST(ParseYamlDocuments, KeepsTheLinesOfTheFile) {
  const auto documents = ParseYamlDocuments(
      "# c\n---\n# only a comment\n---\na: 1\n---\nb:\n  - 2\n...\n---\nc: |\n  --- x\n---\n");
  ASSERT_EQ(documents.size(), 3U);
  for (const YamlDocument& document : documents) EXPECT_TRUE(document.whole);
  EXPECT_EQ(documents[0].root.Find("a")->line, 5);
  EXPECT_EQ(documents[1].root.Find("b")->value.items[0].line, 8);
  EXPECT_EQ(documents[2].root.Find("c")->line, 11);
  EXPECT_EQ(documents[2].root.Find("c")->value.text, "--- x\n");
}

TEST(ParseYamlDocuments, EachHasItsOwnMistakes) {
  const auto documents = ParseYamlDocuments("a: &x 1\n---\nb: 2\n---\nc: 3\nc: 4\n---\nd: [\n");
  ASSERT_EQ(documents.size(), 4U);
  ASSERT_EQ(documents[0].mistakes.size(), 1U);
  EXPECT_EQ(documents[0].mistakes[0].line, 1);
  EXPECT_TRUE(documents[1].whole);
  EXPECT_TRUE(documents[1].mistakes.empty());
  ASSERT_EQ(documents[2].mistakes.size(), 1U);
  EXPECT_THAT(documents[2].mistakes[0].message, HasSubstr("line 5 has it already"));
  EXPECT_FALSE(documents[3].whole);
  EXPECT_FALSE(documents[3].mistakes.empty());
}

TEST(ParseYamlDocuments, ATextWithNoneIsAMistake) {
  for (const char* text : {"", "# c\n", "---\n---\n", "---\n...\n"}) {
    const auto documents = ParseYamlDocuments(text);
    ASSERT_EQ(documents.size(), 1U) << text;
    EXPECT_FALSE(documents[0].whole);
    EXPECT_EQ(documents[0].mistakes.at(0).message, "the file is empty");
  }
}

TEST(ParseYamlDocuments, SizeAndNumberAreCapped) {
  const auto large = ParseYamlDocuments("a: " + std::string(10 << 20, 'x'));
  ASSERT_EQ(large.size(), 1U);
  EXPECT_THAT(large[0].mistakes.at(0).message,
              HasSubstr("the file has 10485763 bytes, more than the 1048576 allowed"));
  std::string many;
  for (size_t i = 0; i <= kMaxConfigDocuments; ++i) many += "--- {}\n";
  const auto documents = ParseYamlDocuments(many);
  EXPECT_EQ(documents.size(), kMaxConfigDocuments);
  EXPECT_FALSE(documents.back().whole);
  EXPECT_THAT(documents.back().mistakes.at(0).message, HasSubstr("more than 4096 documents"));
}

TEST(ParseYaml, ALaughBombIsRefusedByItsFirstAnchor) {
  std::string bomb = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 30; ++i) {
    bomb += fmt::format("a{0}: &a{0} [*a{1}, *a{1}]\n", i, i - 1);
  }
  EXPECT_EQ(FirstMistake(bomb), "1: a0: anchors (&name) are not supported: write the value out");
}

TEST(ParseYaml, EveryPlaceForAnAnchorAliasOrTagIsRefused) {
  for (const char* text : {"&x a: 1", "a: &x", "a: &x {b: c}", "a: [&x 1]", "!t a: 1", "a: !t b",
                           "a: !t [b]", "a: !t {b: c}", "!t {a: b}", "&x\na: 1"}) {
    EXPECT_THAT(FirstMistake(text), HasSubstr("not supported")) << text;
  }
  EXPECT_THAT(FirstMistake("a: *x"), HasSubstr("1: "));
}

TEST(ParseYaml, DepthIsCapped) {
  const auto nested = [](size_t depth) {
    return "a: " + std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_EQ(FirstMistake(nested(kMaxConfigDepth - 1)), "");
  EXPECT_THAT(FirstMistake(nested(kMaxConfigDepth)), HasSubstr("nested more than 32 deep"));
  EXPECT_THAT(FirstMistake(nested(100000)), HasSubstr("nested more than 32 deep"));
  EXPECT_NE(FirstMistake(std::string(500000, '[')), "");
  EXPECT_NE(FirstMistake(std::string(500000, '{')), "");
  std::string dashes;
  for (int i = 0; i < 100000; ++i) dashes += "- ";
  EXPECT_NE(FirstMistake(dashes), "");
}

TEST(ParseYaml, SizeIsCapped) {
  EXPECT_THAT(FirstMistake("a: " + std::string(kMaxConfigBytes, 'x')), HasSubstr("more than the"));
  EXPECT_EQ(FirstMistake("a: " + std::string(kMaxConfigBytes - 3, 'x')), "");
}

TEST(ParseYaml, BytesThatWouldBeMisreadAreRefused) {
  EXPECT_THAT(FirstMistake("a: 1\n\tb: 2\n"), HasSubstr("2: : a tab in the indentation"));
  EXPECT_THAT(FirstMistake("a:\n \t- b\n"), HasSubstr("2: : a tab in the indentation"));
  EXPECT_EQ(FirstMistake("a: 1\t# comment\n"), "");
  EXPECT_THAT(FirstMistake("a: 1\nb: 2\x04\nc: 3\n"), HasSubstr("2: : control character 0x04"));
  EXPECT_THAT(FirstMistake(std::string("a: \0b", 5)), HasSubstr("control character 0x00"));
  EXPECT_THAT(FirstMistake("a: b\n\xff\xfe"), HasSubstr("2: : the text is not UTF-8"));
  EXPECT_THAT(FirstMistake("a: \xc0\xaf"), HasSubstr("not UTF-8"));
  EXPECT_THAT(FirstMistake("a: \xed\xa0\x80"), HasSubstr("not UTF-8"));
  EXPECT_THAT(FirstMistake("a: \xf4\x90\x80\x80"), HasSubstr("not UTF-8"));
  EXPECT_THAT(FirstMistake("a: \xe2\x82"), HasSubstr("not UTF-8"));
  EXPECT_EQ(FirstMistake("a: \xc3\xbc \xe2\x82\xac \xf0\x9f\x98\x80"), "");
}

TEST(ParseYaml, SyntaxErrorsHaveALine) {
  for (const char* text : {"a: 1\nb: [", "a: 1\nb: }", "a: 1\nb: 'x", "a: 1\nb: \"\\q\"",
                           "a: 1\n- b", "a: 1\nb: @x", "a: 1\nb: c: d"}) {
    const std::string got = FirstMistake(text);
    EXPECT_FALSE(got.empty()) << text;
    EXPECT_THAT(got.substr(0, 2), testing::AnyOf("2:", "3:")) << text << " gave " << got;
  }
}

TEST(ParseYaml, AQuoteThatIsNeverClosedIsFoundWhereItOpens) {
  // Each of these ends with a line break, which yaml-cpp takes for a closing quote.
  for (const char* before : {"", "\xef\xbb\xbf", "# \xc3\xbc\xe2\x82\xac\r\nb: '\xc3\xbc'\r\n"}) {
    for (const char* text : {"a: 'x\nc: 2\n", "a: \"x\nc: 2\n\n", "a: ['x''\n]\n", "a: \"\\\"\n",
                             "a: {b: 'x}\n", "'a: x\n"}) {
      const std::string whole = std::string(before) + text;
      const std::string line = before[0] == '#' ? "3: " : "1: ";
      EXPECT_THAT(FirstMistake(whole), HasSubstr("is never closed")) << whole;
      EXPECT_EQ(FirstMistake(whole).substr(0, 3), line) << whole;
    }
  }
  EXPECT_EQ(FirstMistake("a: 'it''s'\nb: \"\\\"\"\nc: 'x\n  y'\nd: it's\ne: |\n  'x\n"), "");
}

TEST(ParseYaml, DuplicateKeysNameBothLinesAndTheFirstCounts) {
  YamlNode root;
  std::vector<Mistake> mistakes;
  EXPECT_TRUE(ParseYaml("a: 1\nb:\n  c: 1\n  'c': 2\na: 2\n", &root, &mistakes));
  ASSERT_EQ(mistakes.size(), 2U);
  EXPECT_EQ(mistakes[0].line, 4);
  EXPECT_EQ(mistakes[0].path, "b.c");
  EXPECT_THAT(mistakes[1].message, HasSubstr("line 1"));
  EXPECT_EQ(root.Find("a")->value.text, "1");
}

TEST(Quoted, CutsAndEscapes) {
  EXPECT_EQ(Quoted("a\"b\n\x7f"), "\"a\"b\\x0a\\x7f\"");
  EXPECT_EQ(Quoted("\xc3\xbc\xff"), "\"\xc3\xbc\\xff\"");
  EXPECT_LT(Quoted(std::string(1000, 'x')).size(), 70U);
}

TEST(JoinPath, QuotesKeysThatWouldMislead) {
  EXPECT_EQ(JoinPath("a", "b"), "a.b");
  EXPECT_EQ(JoinPath("", "b"), "b");
  EXPECT_EQ(JoinPath("a", "b.c"), "a.\"b.c\"");
  EXPECT_EQ(JoinPath("a", ""), "a.\"\"");
  EXPECT_EQ(JoinPath("a", size_t{3}), "a[3]");
}

}  // namespace
}  // namespace spoke::config
