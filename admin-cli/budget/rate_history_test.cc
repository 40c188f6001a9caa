#include "admin-cli/budget/rate_history.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::ctl {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

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
