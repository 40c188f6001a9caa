#include "ipam-server/policy/rate_text.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

using ::testing::HasSubstr;

TEST(ParseRate, ReadsExactlyWhatIsWritten) {
  const struct {
    const char* text;
    uint64_t want;
  } cases[] = {{"100Mbit", 100'000'000},
               {"1.5Gbit", 1'500'000'000},
               {"1Mbit", kLowestRate},
               {"1Tbit", kHighestRate},
               {"1000Gbps", kHighestRate},
               {"1000000bit", kLowestRate},
               {"1000.001kbps", 1'000'001},
               {"0.000001Tbit", kLowestRate},
               {"007Mbit", 7'000'000},
               {"2.50000000000000000000Mbit", 2'500'000},
               {"0.123456789012Tbit", 123'456'789'012}};
  for (const auto& c : cases) {
    const auto rate = ParseRate(c.text);
    ASSERT_TRUE(rate.ok()) << c.text << ": " << rate.status();
    EXPECT_EQ(*rate, c.want) << c.text;
  }
}

TEST(ParseRate, AsksForAUnitOfBits) {
  EXPECT_EQ(base::MessageOf(ParseRate("100").status()),
            "\"100\" has no unit: write bits a second, such as 100Mbit");
  for (const char* text : {"100M", "100MB", "100mbit", "100Kbit", "100Mibit", "100 Mbit",
                           "100Mbit/s", "1e3Mbit", "0x10Mbit", "100Mbit ", "1,5Gbit"}) {
    const auto rate = ParseRate(text);
    EXPECT_EQ(rate.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(base::MessageOf(rate.status()), HasSubstr("has a unit that is none of bit, kbit"))
        << text;
  }
}

TEST(ParseRate, RefusesWhatIsNoNumber) {
  for (const char* text : {"", "-", "Mbit", ".5Gbit", "5.Gbit", "1.2.3Gbit", "+1Gbit", " 1Gbit",
                           "unlimited", "--1Mbit"}) {
    EXPECT_THAT(base::MessageOf(ParseRate(text).status()), HasSubstr("is no rate: write a number"))
        << text;
  }
}

TEST(ParseRate, KeepsTheBounds) {
  for (const char* text :
       {"0Mbit", "-5Mbit", "999999bit", "0.5Mbit", "1000001000000bit", "1.000000000001Tbit",
        "18446744073709551616bit", "18446744073710Mbit", "99999999999999999999999999999999Tbit"}) {
    EXPECT_EQ(base::MessageOf(ParseRate(text).status()),
              "must be from 1Mbit to 1Tbit, not \"" + std::string(text) + "\"");
  }
}

TEST(ParseRate, RefusesPartsOfABit) {
  for (const char* text : {"1000000.5bit", "1000.0001kbit", "1.0000000000001Gbit"}) {
    EXPECT_THAT(base::MessageOf(ParseRate(text).status()), HasSubstr("has parts of a bit")) << text;
  }
}

TEST(RateText, TakesTheLargestWholeUnit) {
  EXPECT_EQ(RateText(0), "0bit");
  EXPECT_EQ(RateText(999), "999bit");
  EXPECT_EQ(RateText(1'000), "1kbit");
  EXPECT_EQ(RateText(1'500'000'000), "1500Mbit");
  EXPECT_EQ(RateText(2'000'000'000), "2Gbit");
  EXPECT_EQ(RateText(kHighestRate), "1Tbit");
  EXPECT_EQ(RateText(UINT64_MAX), "18446744073709551615bit");
}

}  // namespace
}  // namespace spoke::ipam
