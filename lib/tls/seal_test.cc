#include "lib/tls/seal.h"

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"

namespace spoke::tls {
namespace {

const std::string kKey(kSealKeyBytes, 'k');

TEST(Seal, OnlyTheSameKeyAndContextOpenIt) {
  const auto sealed = Seal(kKey, "authority", "the secret");
  ASSERT_TRUE(sealed.ok()) << sealed.status();
  EXPECT_EQ(sealed->find("secret"), std::string::npos);
  EXPECT_EQ(Unseal(kKey, "authority", *sealed).value(), "the secret");
  EXPECT_TRUE(absl::IsUnauthenticated(Unseal(kKey, "another", *sealed).status()));
  EXPECT_TRUE(absl::IsUnauthenticated(
      Unseal(std::string(kSealKeyBytes, 'l'), "authority", *sealed).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Unseal("short", "authority", *sealed).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Seal("short", "authority", "").status()));
  EXPECT_NE(Seal(kKey, "authority", "the secret").value(), *sealed) << "the nonce is random";
  EXPECT_EQ(Unseal(kKey, "", Seal(kKey, "", "").value()).value(), "");
}

TEST(Seal, NoChangedByteIsTaken) {
  const std::string sealed = Seal(kKey, "c", "secret").value();
  for (size_t i = 0; i < sealed.size(); ++i) {
    std::string changed = sealed;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_TRUE(absl::IsUnauthenticated(Unseal(kKey, "c", changed).status())) << i;
    EXPECT_TRUE(absl::IsUnauthenticated(Unseal(kKey, "c", sealed.substr(0, i)).status())) << i;
  }
}

// The last value is of test case 3 in RFC 5869, appendix A.
TEST(Seal, KeysFollowFromSecretAndLabelAlone) {
  const std::string one = DeriveKey("secret", "one").value();
  EXPECT_EQ(one.size(), kSealKeyBytes);
  EXPECT_EQ(DeriveKey("secret", "one").value(), one);
  EXPECT_NE(DeriveKey("secret", "two").value(), one);
  EXPECT_NE(DeriveKey("secre", "tone").value(), one);
  EXPECT_EQ(absl::BytesToHexString(DeriveKey(std::string(22, '\x0b'), "").value()),
            "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d");
}

}  // namespace
}  // namespace spoke::tls
