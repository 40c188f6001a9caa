#include "netagent/classes/address_ranges.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;

ip::Address A(const std::string& text) { return ip::Address::Parse(text).value(); }
ip::Prefix P(const std::string& text) { return ip::Prefix::Parse(text).value(); }

TEST(FlattenTest, TheSmallestBlockWinsAndTheLastOfEqualOnes) {
  using Range = AddressRange<int>;
  EXPECT_THAT(Flatten<int>({{P("10.0.0.0/8"), 1},
                            {P("10.0.0.0/16"), 2},
                            {P("10.255.0.0/16"), 3},
                            {P("10.255.0.0/16"), 4},
                            {P("fd00::/8"), 5}},
                           ip::Family::kV4, 0),
              ElementsAre(Range{A("0.0.0.0"), A("9.255.255.255"), 0},
                          Range{A("10.0.0.0"), A("10.0.255.255"), 2},
                          Range{A("10.1.0.0"), A("10.254.255.255"), 1},
                          Range{A("10.255.0.0"), A("10.255.255.255"), 4},
                          Range{A("11.0.0.0"), A("255.255.255.255"), 0}));
}

TEST(FlattenTest, ReachesBothEndsOfTheSpace) {
  using Range = AddressRange<int>;
  EXPECT_THAT(Flatten<int>({{P("::/1"), 1}, {P("ffff::/16"), 2}}, ip::Family::kV6, 0),
              ElementsAre(Range{A("::"), A("7fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), 1},
                          Range{A("8000::"), A("fffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), 0},
                          Range{A("ffff::"), A("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), 2}));
  EXPECT_THAT(Flatten<int>({{P("0.0.0.0/0"), 7}}, ip::Family::kV4, 0),
              ElementsAre(Range{A("0.0.0.0"), A("255.255.255.255"), 7}));
}

TEST(MergeTest, ChoosesAddressByAddress) {
  const auto one = Flatten<int>({{P("10.0.0.0/8"), 1}}, ip::Family::kV4, 0);
  const auto other = Flatten<int>({{P("10.128.0.0/9"), 10}}, ip::Family::kV4, 0);
  using Range = AddressRange<int>;
  EXPECT_THAT(Merge<int>(one, other, [](int a, int b) { return a + b; }),
              ElementsAre(Range{A("0.0.0.0"), A("9.255.255.255"), 0},
                          Range{A("10.0.0.0"), A("10.127.255.255"), 1},
                          Range{A("10.128.0.0"), A("10.255.255.255"), 11},
                          Range{A("11.0.0.0"), A("255.255.255.255"), 0}));
}

TEST(BlocksOfTest, AreTheFewestThatMakeUpTheRange) {
  EXPECT_THAT(BlocksOf(A("10.0.0.0"), A("10.255.255.255")), ElementsAre(P("10.0.0.0/8")));
  EXPECT_THAT(BlocksOf(A("10.0.0.1"), A("10.0.0.6")),
              ElementsAre(P("10.0.0.1/32"), P("10.0.0.2/31"), P("10.0.0.4/31"), P("10.0.0.6/32")));
  EXPECT_THAT(BlocksOf(A("0.0.0.0"), A("255.255.255.255")), ElementsAre(P("0.0.0.0/0")));
  EXPECT_THAT(BlocksOf(A("fd00::"), A("fd00::")), ElementsAre(P("fd00::/128")));
}

}  // namespace
}  // namespace spoke::netagent
