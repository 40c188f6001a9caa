#include "admin-cli/table.h"

#include <nlohmann/json.hpp>

#include "gtest/gtest.h"

namespace spoke::ctl {
namespace {

using Json = nlohmann::ordered_json;

TEST(FormatTable, AlignsAndLeavesNoBlanksAtTheEnd) {
  EXPECT_EQ(FormatTable({"NAME", "FREE"}, {{"default", "3"}, {"a", "10"}}),
            "NAME     FREE\ndefault  3\na        10\n");
  EXPECT_EQ(FormatTable({"NAME", "POD"}, {{"a", ""}}), "NAME  POD\na\n");
}

TEST(FormatTable, ANameCannotDriveTheTerminal) {
  EXPECT_EQ(FormatTable({"POD"}, {{"a\x1b[2J\n"}}), "POD\na?[2J?\n");
}

TEST(FormatYaml, NestsListsAndMaps) {
  const Json value = {{"nodes", Json::array({{{"name", "n1"}, {"lent", 2}}, {{"name", "n2"}}})},
                      {"problems", Json::array()},
                      {"text", "a: \"b\"\n"}};
  EXPECT_EQ(FormatYaml(value),
            "nodes:\n  - name: \"n1\"\n    lent: 2\n  - name: \"n2\"\nproblems: []\n"
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
