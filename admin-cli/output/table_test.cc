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
