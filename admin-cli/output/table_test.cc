#include "admin-cli/output/table.h"

#include <nlohmann/json.hpp>

#include "gtest/gtest.h"

namespace spoke::ctl {
namespace {

using Json = nlohmann::ordered_json;

TEST(FormatTable, AlignsAndLeavesNoBlanksAtTheEnd) {
  EXPECT_EQ(FormatTable({"NAME", "FREE"}, {{{"default"}, {"3"}}, {{"a"}, {"10"}}}, {}),
            "NAME     FREE\ndefault  3\na        10\n");
  EXPECT_EQ(FormatTable({"NAME", "POD"}, {{{"a"}, {""}}}, {}), "NAME  POD\na\n");
  EXPECT_EQ(FormatTable({"NAME", "POD"}, {{{"a"}, {"b"}}}, {.header = false}), "a  b\n");
}

TEST(FormatTable, ColoursTakeNoWidth) {
  EXPECT_EQ(FormatTable({"A", "B"}, {{{"x", Tone::kBad}, {"y"}}, {{"long"}, {"z"}}},
                        {.colours = true, .header = false}),
            "\x1b[31mx\x1b[0m     y\nlong  z\n");
}

TEST(FormatTable, ALetterOfTwoBytesIsOneWide) {
  EXPECT_EQ(FormatTable({"A", "B"}, {{{"\xC3\xA4"}, {"y"}}}, {}), "A  B\n\xC3\xA4  y\n");
}

TEST(FormatTable, ANameCannotDriveTheTerminal) {
  EXPECT_EQ(FormatTable({"POD"}, {{{"a\x1b[2J\n"}}}, {}), "POD\na?[2J?\n");
}

TEST(FormatTable, WhatHasChangedIsInverseWhereColoursAreWanted) {
  const std::vector<Row> rows = {{{"x", Tone::kBad, Change::kMarked},
                                  {"y", {}, Change::kMarked},
                                  {"", {}, Change::kMarked},
                                  {"z"}}};
  EXPECT_EQ(FormatTable({"A", "B", "C", "D"}, rows, {.colours = true, .header = false}),
            "\x1b[7m\x1b[31mx\x1b[0m  \x1b[7my\x1b[0m    z\n");
  EXPECT_EQ(FormatTable({"A", "B", "C", "D"}, rows, {.header = false}), "x  y    z\n");
}

TEST(FitLastColumn, LeavesWhatFitsAndCutsTheRest) {
  const auto fitted = [](Fit fit, size_t name, const std::string& text) {
    std::vector<Row> rows = {{{std::string(name, 'n')}, {text}}};
    FitLastColumn({"NAME", "WHY"}, fit, rows);
    return rows[0][1].text;
  };
  EXPECT_EQ(fitted(Fit::kWidth, 8, "short; and so on"), "short; and so on");
  EXPECT_EQ(fitted(Fit::kClause, 8, "short; and so on"), "short...");
  const std::string text(200, 'x');
  EXPECT_EQ(fitted(Fit::kWhole, 8, text), text);
  EXPECT_EQ(fitted(Fit::kWidth, 8, text), std::string(87, 'x') + "...");
  EXPECT_EQ(fitted(Fit::kWidth, 2, text).size(), 94U) << "the title is wider";
  EXPECT_EQ(fitted(Fit::kClause, 150, text).size(), 12U) << "so much is left in any case";
  EXPECT_EQ(fitted(Fit::kWidth, 81, "one two three four five"), "one two three...");
  std::string wide;
  for (int i = 0; i < 100; ++i) wide += "\xC3\xA4";
  EXPECT_EQ(WidthOf(fitted(Fit::kWidth, 8, wide)), 90U);
  EXPECT_EQ(fitted(Fit::kWidth, 8, wide).size(), 2 * 87U + 3) << "no letter is cut in two";
}

TEST(Printable, KeepsTextAndNothingElse) {
  EXPECT_EQ(Printable("a\tb\x7F"), "a?b?");
  EXPECT_EQ(Printable("\xC3\xA4 \xE2\x82\xAC"), "\xC3\xA4 \xE2\x82\xAC");
  EXPECT_EQ(Printable("\xC2\x9B"
                      "2J"),
            "?2J")
      << "a control of the second block";
  EXPECT_EQ(Printable("\xFF\xC3"), "??");
  EXPECT_EQ(Printable("\xED\xA0\x80"), "???") << "a surrogate";
  EXPECT_EQ(PrintableLines("a\n\tb\x1b"), "a\n\tb?");
}

TEST(FormatFields, AlignsValuesAndLeavesOutEmptyOnes) {
  EXPECT_EQ(FormatFields({{"Name", {"a"}}, {"Long name", {"b"}}, {"Empty", {""}}}, false),
            "Name:       a\nLong name:  b\n");
  EXPECT_EQ(FormatFields({{"A", {"b", Tone::kGood}}}, true), "A:  \x1b[32mb\x1b[0m\n");
}

TEST(FormatFields, ALongValueGoesOnBelowAfterASemicolon) {
  const std::string a(50, 'a');
  const std::string b(50, 'b');
  EXPECT_EQ(FormatFields({{"Why", {a + "; " + b + "; c"}}}, false),
            "Why:  " + a + ";\n      " + b + "; c\n");
  EXPECT_EQ(FormatFields({{"Why", {a + b}}}, false), "Why:  " + a + b + "\n");
  EXPECT_EQ(FormatFields({{"Why", {"a; b"}}}, false), "Why:  a; b\n");
}

TEST(FormatYaml, NestsListsAndMaps) {
  const Json value = {{"nodes", Json::array({{{"name", "n1"}, {"in_use", 2}}, {{"name", "n2"}}})},
                      {"problems", Json::array()},
                      {"text", "a: \"b\"\n"}};
  EXPECT_EQ(FormatYaml(value),
            "nodes:\n  - name: \"n1\"\n    in_use: 2\n  - name: \"n2\"\nproblems: []\n"
            "text: \"a: \\\"b\\\"\\n\"\n");
  EXPECT_EQ(FormatYaml(Json::array()), "[]\n");
}

TEST(FormatAge, UsesOneUnit) {
  EXPECT_EQ(FormatAge(-5), "0s");
  EXPECT_EQ(FormatAge(119), "119s");
  EXPECT_EQ(FormatAge(120), "2m");
  EXPECT_EQ(FormatAge(3 * 3600), "3h");
  EXPECT_EQ(FormatAge(50 * 3600), "2d");
}

}  // namespace
}  // namespace spoke::ctl
