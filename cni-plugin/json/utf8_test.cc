#include "lib/base/utf8.h"

#include "cni-plugin/json/json.h"
#include "gtest/gtest.h"

namespace spoke::cni {
namespace {

TEST(Utf8, TakesWhatTheStandardTakes) {
  for (const char* text : {"", "a", "\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF",
                           "\xEE\x80\x80", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF", "Zoë 漢字"}) {
    EXPECT_TRUE(base::IsUtf8(text)) << text;
    EXPECT_EQ(ToUtf8(text), text);
  }
}

TEST(Utf8, RefusesOverlongFormsSurrogatesAndWhatIsCutOff) {
  for (const char* text :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "a\xC2", "\xE2\x82", "\xF0\x90\x80"}) {
    EXPECT_FALSE(base::IsUtf8(text)) << text;
    EXPECT_TRUE(base::IsUtf8(ToUtf8(text)));
  }
  EXPECT_EQ(ToUtf8("a\xFF"
                   "b"),
            "a\xEF\xBF\xBD"
            "b");
}

TEST(Utf8, KnowsWhiteSpaceBeyondAscii) {
  for (const uint32_t c :
       {0x09U, 0x20U, 0x85U, 0xA0U, 0x1680U, 0x2003U, 0x2028U, 0x202FU, 0x3000U}) {
    EXPECT_TRUE(IsWhiteSpace(c)) << c;
  }
  for (const uint32_t c : {0x08U, 0x0EU, 0x41U, 0xE0U, 0x200BU, 0xFEFFU}) {
    EXPECT_FALSE(IsWhiteSpace(c)) << c;
  }
}

}  // namespace
}  // namespace spoke::cni
