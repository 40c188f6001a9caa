#include "tests/bench/swarm/latencies.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace spoke::swarm {
namespace {

TEST(HistogramTest, QuantileIsAtMostAnEighthAboveTheTruth) {
  constexpr uint64_t kSeed = 20240611;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937_64 random(kSeed);
  std::uniform_real_distribution<double> exponent(0, 36);
  Histogram histogram;
  std::vector<double> values;
  for (int i = 0; i < 10'000; ++i) {
    const auto value = static_cast<int64_t>(std::exp2(exponent(random)));
    histogram.Add(value);
    values.push_back(static_cast<double>(value));
  }
  EXPECT_EQ(histogram.count(), values.size());
  for (const double quantile : {0.001, 0.1, 0.5, 0.9, 0.99, 1.0}) {
    const double truth = QuantileOf(values, quantile);
    const auto told = static_cast<double>(histogram.Quantile(quantile));
    EXPECT_GE(told, truth) << quantile;
    EXPECT_LE(told, truth * 1.125) << quantile;
  }
}

TEST(HistogramTest, IsEmptyAtFirstAndAfterReset) {
  Histogram histogram;
  EXPECT_EQ(histogram.Quantile(0.5), 0);
  histogram.Add(1000);
  histogram.Reset();
  EXPECT_EQ(histogram.count(), 0U);
}

TEST(QuantileTest, TakesTheNearestRank) {
  const std::vector<double> values = {5, 1, 4, 2, 3};
  EXPECT_EQ(QuantileOf(values, 0.0), 1);
  EXPECT_EQ(QuantileOf(values, 0.5), 3);
  EXPECT_EQ(QuantileOf(values, 0.99), 5);
  EXPECT_EQ(QuantileOf(values, 1.0), 5);
}

}  // namespace
}  // namespace spoke::swarm
