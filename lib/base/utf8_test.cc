#include "lib/base/utf8.h"

#include "gtest/gtest.h"

namespace spoke::base {
namespace {

TEST(DecodeUtf8, SaysTheCharacterAndItsBytes) {
  uint32_t character = 0;
  EXPECT_EQ(DecodeUtf8("ab", character), 1U);
  EXPECT_EQ(character, uint32_t{'a'});
  EXPECT_EQ(DecodeUtf8("\xC2\x80", character), 2U);
  EXPECT_EQ(character, 0x80U);
  EXPECT_EQ(DecodeUtf8("\xED\x9F\xBF.", character), 3U);
  EXPECT_EQ(character, 0xD7FFU);
  EXPECT_EQ(DecodeUtf8("\xF4\x8F\xBF\xBF", character), 4U);
  EXPECT_EQ(character, 0x10FFFFU);
}

TEST(DecodeUtf8, RefusesOverlongFormsSurrogatesAndWhatIsCutOff) {
  uint32_t character = 0;
  for (const char* text :
       {"", "\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xC2", "\xE2\x82", "\xF0\x90\x80"}) {
    EXPECT_EQ(DecodeUtf8(text, character), 0U) << text;
  }
}

}  // namespace
}  // namespace spoke::base
