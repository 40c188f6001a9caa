#include "lib/tls/message_code.h"

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"

namespace spoke::tls {
namespace {

// This is test case 2 of RFC 4231.
TEST(MessageCode, IsHmacWithSha256) {
  EXPECT_EQ(absl::BytesToHexString(CodeOf("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(MessageCode, ProvesTheTextAndTheKey) {
  const std::string code = CodeOf("key", "text");
  EXPECT_TRUE(IsCodeOf(code, "key", "text"));
  EXPECT_FALSE(IsCodeOf(code, "key", "texu"));
  EXPECT_FALSE(IsCodeOf(code, "kez", "text"));
  EXPECT_FALSE(IsCodeOf(code.substr(1), "key", "text"));
  EXPECT_FALSE(IsCodeOf("", "key", "text"));
}

TEST(MessageCode, RandomBytesDiffer) {
  EXPECT_EQ(RandomBytes(32)->size(), 32U);
  EXPECT_NE(*RandomBytes(32), *RandomBytes(32));
}

}  // namespace
}  // namespace spoke::tls
