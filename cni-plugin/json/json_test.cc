#include "cni-plugin/json/json.h"

#include <nlohmann/json.hpp>

#include "gtest/gtest.h"

namespace spoke::cni::json {
namespace {

std::string Nested(int depth) {
  const auto count = static_cast<size_t>(depth);
  return std::string(count, '[') + std::string(count, ']');
}

TEST(ParseJson, RefusesWhatIsNotOneValueInUtf8) {
  for (const std::string text :
       {"", " ", "{", "{} {}", "{\"a\":}", "[1,]", "\"\xFF\"", "\"\xED\xA0\x80\"", "\"\\ud800\"",
        "nul", "{'a':1}", "1e999", "\"a", "\xEF\xBB\xBF{}x"}) {
    Document document;
    EXPECT_FALSE(Parse(text, document)) << text;
  }
  Document document;
  EXPECT_FALSE(Parse(std::string_view("{}\0", 3), document));
}

TEST(ParseJson, DepthIsCapped) {
  Document document;
  EXPECT_TRUE(Parse(Nested(kMaxDepth), document));
  EXPECT_FALSE(Parse(Nested(kMaxDepth + 1), document));
  EXPECT_FALSE(Parse(Nested(1 << 19), document));
  EXPECT_FALSE(Parse(std::string(1 << 20, '{'), document));
  EXPECT_TRUE(
      // The brackets in a string are text.
      Parse("\"" + std::string(1000, '[') + "\\\"{\"", document));
}

TEST(FindInJson, TheLastOfSeveralCountsAndNullIsAbsent) {
  Document document;
  ASSERT_TRUE(Parse(R"({"a":1,"A":2,"a":3,"n":null,"s":"x"})", document));
  EXPECT_EQ(Find(document, "a")->GetInt(), 3);
  EXPECT_EQ(Find(document, "A")->GetInt(), 2);
  EXPECT_EQ(FindAnyCase(document, "a")->GetInt(), 3);
  EXPECT_EQ(FindAnyCase(document, "S")->GetStringLength(), 1U);
  EXPECT_EQ(Find(document, "S"), nullptr);
  EXPECT_EQ(Find(document, "n"), nullptr);
  EXPECT_TRUE(Has(document, "n"));
  EXPECT_FALSE(Has(document, "m"));
  ASSERT_TRUE(Parse("[]", document));
  EXPECT_EQ(Find(document, "a"), nullptr);
}

TEST(PrintJson, AnyBytesBecomeAStringOfJson) {
  for (const std::string& text : {std::string("a\"\\\n\t\x01"), std::string("\0b", 2),
                                  std::string("Zoë\xFF"), std::string()}) {
    std::string out;
    AppendText(text, out);
    EXPECT_TRUE(nlohmann::json::parse(out, nullptr, false).is_string()) << out;
  }
}

TEST(PrintJson, AValueIsPrintedAsItWas) {
  const std::string text =
      R"({"a":[1,-2,2.5,true,null,"\u00e9\n"],"b":{"c":18446744073709551615}})";
  Document document;
  ASSERT_TRUE(Parse(text, document));
  std::string out;
  AppendValue(document, out);
  EXPECT_EQ(nlohmann::json::parse(out), nlohmann::json::parse(text));
}

}  // namespace
}  // namespace spoke::cni::json
