#include "lib/base/version_skew.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/version.h"

namespace spoke::base {
namespace {

TEST(ParseVersion, TakesWhatSemverWrites) {
  EXPECT_EQ(ParseVersion("0.1.0").value(), (Version{0, 1, 0}));
  EXPECT_EQ(ParseVersion("12.34.56-rc.1+linux").value(), (Version{12, 34, 56, "-rc.1+linux"}));
  for (const char* text : {"0.0.0", "999999.1.2", "1.2.3+build-7", "1.2.3--"}) {
    EXPECT_EQ(ParseVersion(text).value().ToString(), text);
  }
  EXPECT_TRUE(ParseVersion(kVersion).ok()) << kVersion;
}

TEST(ParseVersion, RefusesAnythingElse) {
  for (const char* text :
       {"", "1", "1.2", "1.2.3.4", "v1.2.3", "01.2.3", "1.2.03", "1.2.3-", "1.2.3 ", " 1.2.3",
        "1..3", "-1.2.3", "1.2.1000000", "1.2.99999999999999999999", "1.2.3-a b", "swarm"}) {
    EXPECT_EQ(ParseVersion(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_FALSE(ParseVersion("1.2.3-" + std::string(100, 'a')).ok());
}

TEST(SkewBetween, OneMinorVersionEitherWayWorks) {
  const Version v{1, 4, 2};
  EXPECT_EQ(SkewBetween(v, {1, 4, 99, "-rc.1"}), Skew::kWorks);
  EXPECT_EQ(SkewBetween(v, {1, 3, 0}), Skew::kWorks);
  EXPECT_EQ(SkewBetween(v, {1, 5, 0}), Skew::kWorks);
  EXPECT_EQ(SkewBetween(v, {1, 6, 0}), Skew::kFirstIsTooOld);
  EXPECT_EQ(SkewBetween(v, {1, 2, 0}), Skew::kSecondIsTooOld);
  EXPECT_EQ(SkewBetween(v, {2, 4, 2}), Skew::kFirstIsTooOld);
  EXPECT_EQ(SkewBetween(v, {0, 4, 2}), Skew::kSecondIsTooOld);
  // The other way round it is the same, mirrored.
  EXPECT_EQ(SkewBetween({1, 6, 0}, v), Skew::kSecondIsTooOld);
}

TEST(CheckSkew, NamesBothAndWhichIsToBeUpgradedFirst) {
  const auto check = [](std::string_view agent, std::string_view server) {
    return CheckSkew({"spoke-netagent", agent}, {"spoke-ipam-server", server});
  };
  EXPECT_TRUE(check("0.1.0", "0.2.7").ok());
  EXPECT_EQ(check("0.1.0", "0.3.1"),
            absl::FailedPreconditionError(
                "spoke-netagent 0.1.0 and spoke-ipam-server 0.3.1 do not work together, since they "
                "are more than one minor version apart: upgrade spoke-netagent first, to 0.2 or "
                "0.3"));
  EXPECT_THAT(check("0.3.0", "0.1.0").message(),
              testing::HasSubstr("upgrade spoke-ipam-server first, to 0.2 or 0.3"));
  EXPECT_EQ(check("1.0.0", "0.9.0"),
            absl::FailedPreconditionError(
                "spoke-netagent 1.0.0 and spoke-ipam-server 0.9.0 do not work together, since they "
                "are of different major versions: upgrade spoke-ipam-server first, to 1.0"));
}

TEST(CheckSkew, AProgramThatSaysNoVersionIsLetIn) {
  EXPECT_TRUE(CheckSkew({"a", ""}, {"b", "7.0.0"}).ok());
  EXPECT_TRUE(CheckSkew({"a", "1.0.0"}, {"b", "swarm"}).ok());
}

}  // namespace
}  // namespace spoke::base
