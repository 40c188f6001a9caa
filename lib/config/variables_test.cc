#include "lib/config/variables.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/status.h"
#include "lib/config/config_text.h"

namespace spoke::config {
namespace {

using ::testing::HasSubstr;

std::optional<std::string> Lookup(const std::string& name) {
  if (name == "NODE_NAME") return "node7";
  if (name == "PORT") return "7443";
  if (name == "_a1") return "${PORT}";
  if (name == "EMPTY") return "";
  if (name == "BELL") return "a\nb";
  if (name == "LATIN") return "\xe9";
  if (name == "LONG") return std::string(kMaxVariableBytes + 1, 'a');
  return std::nullopt;
}

std::string Expanded(std::string_view text) {
  const auto out = ExpandVariables(text, &Lookup);
  return out.ok() ? *out : "error: " + std::string(base::MessageOf(out.status()));
}

TEST(ExpandVariables, ReplacesEachOnceAndLeavesTheRest) {
  EXPECT_EQ(Expanded(""), "");
  EXPECT_EQ(Expanded("$ $5 a$b } {x}"), "$ $5 a$b } {x}");
  EXPECT_EQ(Expanded("${NODE_NAME}"), "node7");
  EXPECT_EQ(Expanded("a-${NODE_NAME}:${PORT}/${EMPTY}b"), "a-node7:7443/b");
  EXPECT_EQ(Expanded("${_a1}"), "${PORT}");
  EXPECT_EQ(Expanded("$${NODE_NAME} $$ $$${PORT} ${PORT}$"), "${NODE_NAME} $$ $${PORT} 7443$");
}

TEST(ExpandVariables, SaysWhatIsWrong) {
  EXPECT_THAT(Expanded("${NONE}"), HasSubstr("\"NONE\" is not set"));
  for (const char* text : {"${", "${PORT", "a ${PORT $"}) {
    EXPECT_THAT(Expanded(text), HasSubstr("has no \"}\"")) << text;
  }
  for (const char* text : {"${}", "${1A}", "${A-B}", "${ PORT}", "${${PORT}}", "${PORT:-1}"}) {
    EXPECT_THAT(Expanded(text), HasSubstr("is no variable's name")) << text;
  }
  EXPECT_THAT(Expanded("${BELL}"), HasSubstr("\"BELL\" holds control characters"));
  EXPECT_THAT(Expanded("${LATIN}"), HasSubstr("not UTF-8"));
  EXPECT_THAT(Expanded("${LONG}"), HasSubstr("4097 bytes"));
}

TEST(ConfigText, ValuesMayNameVariablesAndKeysMayNot) {
  const ConfigText config = ConfigText::Parse(
      "name: ${NODE_NAME}\nport: ${PORT}\nlist: [\"${PORT}\", b]\nmap:\n  ${PORT}: x\n", "f",
      &Lookup);
  std::string name;
  uint32_t port = 0;
  std::vector<std::string> list;
  config.Root().String("name", &name, Need::kRequired);
  config.Root().Uint32("port", &port, Need::kRequired);
  config.Root().StringList("list", &list, Need::kRequired);
  EXPECT_EQ(config.Root().Map("map", Need::kRequired).Keys(), std::vector<std::string>{"${PORT}"});
  EXPECT_EQ(name, "node7");
  EXPECT_EQ(port, 7443U);
  EXPECT_EQ(list, (std::vector<std::string>{"7443", "b"}));
}

TEST(ConfigText, AVariableThatFailsIsOneMistakeWithItsLine) {
  const ConfigText config = ConfigText::Parse(
      "name: ${NONE}\nport: ${NODE_NAME}\nflag: ${}\nlist:\n  - a\n  - ${NONE}\nempty: ${EMPTY}\n",
      "f", &Lookup);
  std::string name = "old";
  uint32_t port = 1;
  bool flag = true;
  std::vector<std::string> list = {"old"};
  config.Root().String("name", &name, Need::kRequired);
  config.Root().Uint32("port", &port, Need::kRequired);
  config.Root().Bool("flag", &flag, Need::kRequired);
  config.Root().StringList("list", &list, Need::kRequired);
  config.Root().String("empty", &name, Need::kRequired);
  EXPECT_EQ(name, "old");
  EXPECT_EQ(list, std::vector<std::string>{"old"});
  EXPECT_EQ(base::MessageOf(config.Finish()),
            "f:1: name: the environment variable \"NONE\" is not set: set it, or write the value "
            "out\n"
            "f:2: port: must be a whole number from 0 to 4294967295, not \"node7\"\n"
            "f:3: flag: \"\" is no variable's name: use letters, digits and _, or write $${ for "
            "the text itself\n"
            "f:6: list[1]: the environment variable \"NONE\" is not set: set it, or write the "
            "value out\n"
            "f:7: empty: must not be empty text");
}

TEST(ConfigText, WithoutALookupValuesStandForThemselves) {
  const ConfigText config = ConfigText::Parse("name: ${NONE} $${\n", "f");
  std::string name;
  config.Root().String("name", &name, Need::kRequired);
  EXPECT_TRUE(config.Finish().ok());
  EXPECT_EQ(name, "${NONE} $${");
}

}  // namespace
}  // namespace spoke::config
