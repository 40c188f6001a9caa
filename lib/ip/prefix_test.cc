#include "lib/ip/prefix.h"

#include <limits>

#include "gtest/gtest.h"

namespace spoke::ip {
namespace {

Prefix P(std::string_view text) { return Prefix::Parse(text).value(); }
Address A(std::string_view text) { return Address::Parse(text).value(); }

TEST(Prefix, ParsesAndPrints) {
  for (const char* text :
       {"0.0.0.0/0", "10.1.0.0/16", "10.1.2.3/32", "::/0", "fd00:1::/64", "fd00::1/128"}) {
    EXPECT_EQ(P(text).ToString(), text);
  }
}

TEST(Prefix, HostBitsAreRefusedWithTheLikelyMeaning) {
  const auto status = Prefix::Parse("10.1.0.5/16").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(status.message()).find("10.1.0.0/16"), std::string::npos);
}

TEST(Prefix, RefusesMalformedText) {
  for (const char* text : {"", "10.0.0.0", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "/8",
                           "10.0.0.0/8 ", "10.0.0.0/0x8", "::/129", "10.0.0.0/8/8"}) {
    EXPECT_FALSE(Prefix::Parse(text).ok()) << text;
  }
}

TEST(Prefix, ContainsAndOverlaps) {
  EXPECT_TRUE(P("10.1.0.0/16").Contains(A("10.1.255.255")));
  EXPECT_FALSE(P("10.1.0.0/16").Contains(A("10.2.0.0")));
  EXPECT_FALSE(P("0.0.0.0/0").Contains(A("::")));
  EXPECT_TRUE(P("10.1.0.0/16").Overlaps(P("10.1.2.0/24")));
  EXPECT_TRUE(P("10.1.2.0/24").Overlaps(P("10.1.0.0/16")));
  EXPECT_FALSE(P("10.1.2.0/24").Overlaps(P("10.1.3.0/24")));
  EXPECT_TRUE(P("fd00::/48").Contains(A("fd00:0:0:ffff::1")));
  EXPECT_FALSE(P("fd00::/64").Contains(A("fd00:0:0:1::1")));
}

TEST(Prefix, SizesAndEnds) {
  EXPECT_EQ(P("10.0.0.0/28").size(), 16U);
  EXPECT_EQ(P("10.0.0.16/28").last(), A("10.0.0.31"));
  EXPECT_EQ(P("0.0.0.0/0").size(), uint64_t{1} << 32U);
  EXPECT_EQ(P("::/0").size(), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(P("fd00::/124").last(), A("fd00::f"));
  EXPECT_EQ(Prefix::Host(A("fd00::1")).size(), 1U);
  EXPECT_EQ(*Prefix::Of(A("10.1.2.3"), 24), P("10.1.2.0/24"));
  EXPECT_FALSE(Prefix::Of(A("10.1.2.3"), 33).ok());
}

}  // namespace
}  // namespace spoke::ip
