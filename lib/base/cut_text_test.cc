#include "gtest/gtest.h"
#include "lib/base/utf8.h"

namespace spoke::base {
namespace {

TEST(CutText, NeverCutsACharacterInTwo) {
  EXPECT_EQ(CutText("short", 5), "short");
  EXPECT_EQ(CutText("longer", 5), "longe");
  EXPECT_EQ(CutText("aé", 2), "a");
  EXPECT_EQ(CutText("aéb", 3), "aé");
  EXPECT_EQ(CutText("日本", 5), "日");
  EXPECT_EQ(CutText("😀", 3), "");
  EXPECT_EQ(CutText("", 0), "");
  EXPECT_EQ(CutText("\x80\x80\x80", 1), "") << "not UTF-8 at all";
}

}  // namespace
}  // namespace spoke::base
