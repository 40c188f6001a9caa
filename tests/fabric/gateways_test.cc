#include "tests/fabric/gateways.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fabric/frames_for_test.h"

namespace spoke::fabric {
namespace {

Gateway Read(std::string_view text) { return ParseGateway(text).value(); }

TEST(ParseGateway, KnowsItsSubnet) {
  const std::string texts[][2] = {{"10.20.0.1/16", "10.20.0.0/16"},
                                  {"10.20.7.129/25", "10.20.7.128/25"},
                                  {"10.0.0.1/0", "0.0.0.0/0"},
                                  {"10.0.0.1/32", "10.0.0.1/32"},
                                  {"fd00:1:2:3:4::1/64", "fd00:1:2:3::/64"},
                                  {"fd00::1:1/112", "fd00::1:0/112"},
                                  {"fd00:1::1/32", "fd00:1::/32"},
                                  {"fd00::1/128", "fd00::1/128"}};
  for (const auto& [text, subnet] : texts) EXPECT_EQ(Read(text).subnet.ToString(), subnet);
  EXPECT_EQ(Read("10.20.0.1/16").address, Ip("10.20.0.1"));
}

TEST(ParseGateway, NamesTheTextItCannotRead) {
  for (const std::string text : {"", "10.0.0.1", "10.0.0.1/", "10.0.0.1/33", "10.0.0.1/-1",
                                 "10.0.0/16", "fd00::1/129", "10.0.0.1/16x"}) {
    const auto gateway = ParseGateway(text);
    ASSERT_TRUE(absl::IsInvalidArgument(gateway.status())) << text;
    EXPECT_THAT(std::string(gateway.status().message()), testing::HasSubstr("\"" + text + "\""));
  }
}

TEST(Gateways, RefuseSubnetsThatOverlap) {
  const auto built = Gateways::Build({Read("10.20.0.1/16"), Read("10.20.1.1/24")});
  ASSERT_TRUE(absl::IsInvalidArgument(built.status()));
  EXPECT_THAT(std::string(built.status().message()), testing::HasSubstr("10.20.0.0/16"));
  EXPECT_THAT(std::string(built.status().message()), testing::HasSubstr("10.20.1.0/24"));
}

TEST(Gateways, RouteBetweenSubnetsAndToAddressesInNone) {
  const Gateways two =
      Gateways::Build({Read("10.20.1.1/24"), Read("10.20.2.1/24"), Read("fd00:1::1/64")}).value();
  EXPECT_FALSE(two.AreApart(Ip("10.20.1.4"), Ip("10.20.1.5")));
  EXPECT_TRUE(two.AreApart(Ip("10.20.1.4"), Ip("10.20.2.4")));
  EXPECT_TRUE(two.AreApart(Ip("10.20.1.4"), Ip("192.0.2.1")));
  EXPECT_TRUE(two.AreApart(Ip("10.20.64.1"), Ip("10.20.64.2")));
  EXPECT_FALSE(two.AreApart(Ip("fd00:1::4"), Ip("fd00:1::5")));
  EXPECT_TRUE(two.Has(Ip("10.20.2.1")));
  EXPECT_FALSE(two.Has(Ip("10.20.2.2")));
  EXPECT_EQ(two.Of(Ip("10.20.2.2"))->address, Ip("10.20.2.1"));
  EXPECT_EQ(two.Of(Ip("10.20.3.2")), nullptr);
}

TEST(Gateways, WithoutThoseOfAFamilyItsNetworkIsFlat) {
  const Gateways v4 = Gateways::Build({Read("10.20.1.1/24")}).value();
  EXPECT_FALSE(v4.AreApart(Ip("fd00::1"), Ip("fd01::1")));
  EXPECT_FALSE(Gateways().AreApart(Ip("10.0.0.1"), Ip("192.0.2.1")));
}

}  // namespace
}  // namespace spoke::fabric
