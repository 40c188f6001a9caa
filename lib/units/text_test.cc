#include "lib/units/text.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/status.h"

namespace spoke::units {
namespace {

using ::testing::HasSubstr;

TEST(ParseBitRate, ReadsExactlyWhatIsWritten) {
  const struct {
    const char* text;
    BitRate want;
  } cases[] = {{"100Mbit", BitRate(100'000'000)},
               {"1.5Gbit", BitRate(1'500'000'000)},
               {"1Mbit", kLowestRate},
               {"1Tbit", kHighestRate},
               {"1000Gbps", kHighestRate},
               {"1000000bit", kLowestRate},
               {"1000.001kbps", BitRate(1'000'001)},
               {"0.000001Tbit", kLowestRate},
               {"007Mbit", BitRate(7'000'000)},
               {"2.50000000000000000000Mbit", BitRate(2'500'000)},
               {"0.123456789012Tbit", BitRate(123'456'789'012)}};
  for (const auto& c : cases) {
    const auto rate = ParseBitRate(c.text);
    ASSERT_TRUE(rate.ok()) << c.text << ": " << rate.status();
    EXPECT_EQ(*rate, c.want) << c.text;
  }
}

TEST(ParseBitRate, AsksForAUnitOfBits) {
  EXPECT_EQ(base::MessageOf(ParseBitRate("100").status()),
            "\"100\" has no unit: write bits a second, such as 100Mbit");
  for (const char* text : {"100M", "100MB", "100mbit", "100Kbit", "100Mibit", "100 Mbit",
                           "100Mbit/s", "1e3Mbit", "0x10Mbit", "100Mbit ", "1,5Gbit"}) {
    const auto rate = ParseBitRate(text);
    EXPECT_EQ(rate.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(base::MessageOf(rate.status()), HasSubstr("has a unit that is none of bit, kbit"))
        << text;
  }
}

TEST(ParseBitRate, RefusesWhatIsNoNumber) {
  for (const char* text : {"", "-", "Mbit", ".5Gbit", "5.Gbit", "1.2.3Gbit", "+1Gbit", " 1Gbit",
                           "unlimited", "--1Mbit"}) {
    EXPECT_THAT(base::MessageOf(ParseBitRate(text).status()),
                HasSubstr("is no rate: write a number"))
        << text;
  }
}

TEST(ParseBitRate, KeepsTheBounds) {
  for (const char* text :
       {"0Mbit", "-5Mbit", "999999bit", "0.5Mbit", "1000001000000bit", "1.000000000001Tbit",
        "18446744073709551616bit", "18446744073710Mbit", "99999999999999999999999999999999Tbit"}) {
    EXPECT_EQ(base::MessageOf(ParseBitRate(text).status()),
              "must be from 1Mbit to 1Tbit, not \"" + std::string(text) + "\"");
  }
}

TEST(ParseBitRate, RefusesPartsOfABit) {
  for (const char* text : {"1000000.5bit", "1000.0001kbit", "1.0000000000001Gbit"}) {
    EXPECT_THAT(base::MessageOf(ParseBitRate(text).status()), HasSubstr("has parts of a bit"))
        << text;
  }
}

TEST(ToText, TakesTheLargestWholeUnit) {
  EXPECT_EQ(ToText(BitRate(0)), "0bit");
  EXPECT_EQ(ToText(BitRate(999)), "999bit");
  EXPECT_EQ(ToText(BitRate(1'000)), "1kbit");
  EXPECT_EQ(ToText(BitRate(1'500'000'000)), "1500Mbit");
  EXPECT_EQ(ToText(BitRate(2'000'000'000)), "2Gbit");
  EXPECT_EQ(ToText(kHighestRate), "1Tbit");
  EXPECT_EQ(ToText(BitRate(UINT64_MAX)), "18446744073709551615bit");
}

TEST(RoundedBitRate, HasThreeDigitsThatSaySomething) {
  EXPECT_EQ(Rounded(BitRate(0)), "0 bit/s");
  EXPECT_EQ(Rounded(BitRate(999)), "999 bit/s");
  EXPECT_EQ(Rounded(BitRate(1000)), "1 kbit/s");
  EXPECT_EQ(Rounded(BitRate(1'250'000'000)), "1.25 Gbit/s");
  EXPECT_EQ(Rounded(BitRate(100'000'000)), "100 Mbit/s");
  EXPECT_EQ(Rounded(BitRate(12'500'000)), "12.5 Mbit/s");
  EXPECT_EQ(Rounded(BitRate(1'048'576)), "1.05 Mbit/s");
  EXPECT_EQ(Rounded(BitRate(1'000'000'000'000)), "1 Tbit/s");
  EXPECT_EQ(Rounded(BitRate(UINT64_MAX)), "18446744 Tbit/s");
}

TEST(RoundedBitRate, NeverSaysAThousandOfAUnitThatHasALargerOne) {
  EXPECT_EQ(Rounded(BitRate(999'499)), "999 kbit/s");
  EXPECT_EQ(Rounded(BitRate(999'500)), "1 Mbit/s");
  EXPECT_EQ(Rounded(BitRate(9'994'999)), "9.99 Mbit/s");
  EXPECT_EQ(Rounded(BitRate(9'995'000)), "10 Mbit/s");
  EXPECT_EQ(Rounded(BitRate(99'950'000)), "100 Mbit/s");
}

TEST(RoundedBytes, UseOneUnit) {
  EXPECT_EQ(Rounded(ByteCount(640)), "640 B");
  EXPECT_EQ(Rounded(ByteCount(1536)), "1.5 KiB");
  EXPECT_EQ(Rounded(ByteCount(200UL << 20)), "200 MiB");
  EXPECT_EQ(Rounded(ByteRate(0)), "0 B/s");
  EXPECT_EQ(Rounded(ByteRate(1536)), "1.5 KiB/s");
}

}  // namespace
}  // namespace spoke::units
