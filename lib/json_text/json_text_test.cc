#include "lib/json_text/json_text.h"

#include <string>

#include "gtest/gtest.h"

namespace spoke::json_text {
namespace {

using nlohmann::json;

TEST(ParseJson, RefusesWhatIsNoJsonTooDeepOrNoText) {
  for (const std::string& text :
       {std::string(), std::string("<html>busy</html>"), std::string("{\"a\":1"),
        std::string("{\"a\":\"\xFF\"}"), std::string("1e999"),
        std::string(kMaxJsonDepth + 1, '[') + std::string(kMaxJsonDepth + 1, ']')}) {
    EXPECT_EQ(ParseJson(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_TRUE(ParseJson(std::string(kMaxJsonDepth, '[') + std::string(kMaxJsonDepth, ']')).ok());
  EXPECT_TRUE(ParseJson(R"({"brackets in a text":"[[[[[[\"[["})").ok());
  EXPECT_FALSE(ParseJsonObject("[]").ok());
}

TEST(Members, OfAnotherTypeAreAsGoodAsNone) {
  const json object = json::parse(R"({"n":null,"s":"x","b":true,"i":-7,"f":1.5,"big":99999999999,
                                      "huge":18446744073709551615})");
  EXPECT_EQ(FindMember(object, "n"), nullptr);
  EXPECT_EQ(FindMember(object, "missing"), nullptr);
  EXPECT_EQ(FindMember(json::array(), "s"), nullptr);
  EXPECT_EQ(StringMember(object, "s"), "x");
  EXPECT_EQ(StringMember(object, "b"), "");
  EXPECT_EQ(BoolMember(object, "b"), true);
  EXPECT_EQ(BoolMember(object, "s"), std::nullopt);
  EXPECT_EQ(IntMember(object, "i"), -7);
  EXPECT_EQ(IntMember(object, "f"), std::nullopt);
  EXPECT_EQ(IntMember(object, "big"), std::nullopt);
  EXPECT_EQ(IntMember(object, "huge"), std::nullopt);
}

TEST(PrintJson, ReplacesWhatIsNoText) {
  EXPECT_EQ(PrintJson(json{{"a", "\xFF"}}), "{\"a\":\"\xEF\xBF\xBD\"}");
}

TEST(Excerpt, IsOneBoundedLine) {
  EXPECT_EQ(Excerpt("a\nb\tc"), "a b c");
  EXPECT_EQ(Excerpt(std::string(1000, 'x')).size(), 203U);
}

}  // namespace
}  // namespace spoke::json_text
