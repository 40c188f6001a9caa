#include "admin-cli/budget/bit_rate.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::ctl {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(FormatBitRate, HasThreeDigitsThatSaySomething) {
  EXPECT_EQ(FormatBitRate(0), "0 bit/s");
  EXPECT_EQ(FormatBitRate(999), "999 bit/s");
  EXPECT_EQ(FormatBitRate(1000), "1 kbit/s");
  EXPECT_EQ(FormatBitRate(1'250'000'000), "1.25 Gbit/s");
  EXPECT_EQ(FormatBitRate(100'000'000), "100 Mbit/s");
  EXPECT_EQ(FormatBitRate(12'500'000), "12.5 Mbit/s");
  EXPECT_EQ(FormatBitRate(1'048'576), "1.05 Mbit/s");
  EXPECT_EQ(FormatBitRate(1'000'000'000'000), "1 Tbit/s");
  EXPECT_EQ(FormatBitRate(UINT64_MAX), "18446744 Tbit/s");
}

TEST(FormatBitRate, NeverSaysAThousandOfAUnitThatHasALargerOne) {
  EXPECT_EQ(FormatBitRate(999'499), "999 kbit/s");
  EXPECT_EQ(FormatBitRate(999'500), "1 Mbit/s");
  EXPECT_EQ(FormatBitRate(9'994'999), "9.99 Mbit/s");
  EXPECT_EQ(FormatBitRate(9'995'000), "10 Mbit/s");
  EXPECT_EQ(FormatBitRate(99'950'000), "100 Mbit/s");
}

TEST(FormatShare, KnowsLittleFromNothing) {
  EXPECT_EQ(FormatShare(0, 100), "0 %");
  EXPECT_EQ(FormatShare(1, 1000), "<1 %");
  EXPECT_EQ(FormatShare(98, 100), "98 %");
  EXPECT_EQ(FormatShare(150, 100), "150 %");
  EXPECT_EQ(FormatShare(1, 0), "-");
}

TEST(RateHistory, KeepsTheLastReadingsOfWhatIsStillThere) {
  RateHistory history;
  history.Add({{{"b", "x"}, 1}, {{"b", "y"}, 5}});
  history.Add({{{"b", "x"}, 2}});
  EXPECT_THAT(history.Of({"b", "x"}), ElementsAre(1, 2));
  EXPECT_THAT(history.Of({"b", "y"}), IsEmpty());
  for (uint64_t i = 0; i < RateHistory::kReadings; ++i) history.Add({{{"b", "x"}, i}});
  EXPECT_EQ(history.Of({"b", "x"}).size(), RateHistory::kReadings);
  EXPECT_EQ(history.Of({"b", "x"}).front(), 0);
}

}  // namespace
}  // namespace spoke::ctl
