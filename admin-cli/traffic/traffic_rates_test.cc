#include "admin-cli/traffic/traffic_rates.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::ctl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const TrafficKey kA = {"a", ""};
const TrafficKey kB = {"b", ""};

TEST(TrafficRates, NeedTwoReadings) {
  TrafficRates rates;
  EXPECT_FALSE(rates.RateOf(kA).has_value());
  rates.Add(1000, {{kA, {10, 20}}});
  EXPECT_FALSE(rates.RateOf(kA).has_value());
  EXPECT_THAT(rates.TrendOf(kA), IsEmpty());
  rates.Add(1000, {{kA, {99, 99}}});  // The reading is of the same moment once more.
  EXPECT_FALSE(rates.RateOf(kA).has_value());
  rates.Add(3000, {{kA, {30, 60}}});
  EXPECT_DOUBLE_EQ(rates.RateOf(kA)->sent, 10);
  EXPECT_DOUBLE_EQ(rates.RateOf(kA)->received, 20);
  EXPECT_THAT(rates.TrendOf(kA), ElementsAre(30));
}

TEST(TrafficRates, SpanTheTimeBetweenTwoReports) {
  TrafficRates rates;
  // Agents report 1,000 bytes at 10 s and at 20 s.
  rates.Add(5'000, {{kA, {0, 0}}});
  rates.Add(10'000, {{kA, {1000, 0}}});
  rates.Add(15'000, {{kA, {1000, 0}}});
  rates.Add(20'000, {{kA, {2000, 0}}});
  EXPECT_DOUBLE_EQ(rates.RateOf(kA)->sent, 100);
  rates.Add(25'000, {{kA, {2000, 0}}});
  EXPECT_DOUBLE_EQ(rates.RateOf(kA)->sent, 100);
}

TEST(TrafficRates, WhatIsNewBeganAtZeroAndWhatFellStandsStill) {
  TrafficRates rates;
  rates.Add(0, {{kA, {500, 500}}});
  rates.Add(1000, {{kA, {100, 600}}, {kB, {7, 0}}});
  EXPECT_DOUBLE_EQ(rates.RateOf(kA)->sent, 0);
  EXPECT_DOUBLE_EQ(rates.RateOf(kA)->received, 100);
  EXPECT_DOUBLE_EQ(rates.RateOf(kB)->sent, 7);
  rates.Add(2000, {{kB, {7, 0}}});
  EXPECT_THAT(rates.TrendOf(kA), IsEmpty());
}

TEST(TrafficRates, RememberTheLastOnly) {
  TrafficRates rates;
  for (int64_t i = 0; i < 200; ++i) rates.Add(i * 1000, {{kA, {static_cast<uint64_t>(i), 0}}});
  EXPECT_THAT(rates.TrendOf(kA), SizeIs(TrafficRates::kTrend));
}

TEST(Sparkline, GoesFromTheLowestBlockToTheFullOne) {
  EXPECT_EQ(Sparkline({}), "");
  EXPECT_EQ(Sparkline({0, 0}), "\u2581\u2581");
  EXPECT_EQ(Sparkline({0, 4, 8}), "\u2581\u2585\u2588");
}

TEST(Sparkline, OfAWholeIsFullAtTheWholeAndAbove) {
  EXPECT_EQ(Sparkline({0, 50, 100, 200}, 100), "\u2581\u2585\u2588\u2588");
  EXPECT_EQ(Sparkline({5}, 0), "\u2581");
}

}  // namespace
}  // namespace spoke::ctl
