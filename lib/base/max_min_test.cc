#include "lib/base/max_min.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace spoke::base {
namespace {

double Sum(const std::vector<double>& shares) {
  return std::accumulate(shares.begin(), shares.end(), 0.0);
}

std::vector<Claimant> RandomClaimants(std::mt19937_64& random) {
  std::uniform_int_distribution<size_t> count(0, 40);
  std::uniform_real_distribution<double> amount(0, 100);
  std::vector<Claimant> claimants(count(random));
  for (auto& claimant : claimants) {
    claimant.demand = random() % 4 == 0 ? 0 : amount(random);
    claimant.weight = 0.5 + amount(random) / 10;
    if (random() % 3 == 0) claimant.min = amount(random) / 10;
    if (random() % 3 == 0) claimant.max = claimant.min + amount(random);
  }
  return claimants;
}

double HighOf(const Claimant& claimant) {
  return claimant.max > 0 ? std::min(claimant.demand, claimant.max) : claimant.demand;
}

TEST(WeightedMaxMin, GivesAllThatIsAskedForWhenThereIsEnough) {
  const std::vector<Claimant> claimants = {{.demand = 10}, {.demand = 20}, {.demand = 0}};
  EXPECT_EQ(WeightedMaxMin(100, claimants), (std::vector<double>{10, 20, 0}));
}

TEST(WeightedMaxMin, OthersGetWhatOneDoesNotUse) {
  const std::vector<Claimant> claimants = {{.demand = 10}, {.demand = 90}, {.demand = 90}};
  EXPECT_EQ(WeightedMaxMin(100, claimants), (std::vector<double>{10, 45, 45}));
}

TEST(WeightedMaxMin, SharesByWeight) {
  const std::vector<Claimant> claimants = {{.demand = 90, .weight = 3}, {.demand = 90}};
  EXPECT_EQ(WeightedMaxMin(100, claimants), (std::vector<double>{75, 25}));
}

TEST(WeightedMaxMin, KeepsMinAndMax) {
  const std::vector<Claimant> claimants = {
      {.demand = 90, .min = 50}, {.demand = 90, .max = 10}, {.demand = 90}};
  EXPECT_EQ(WeightedMaxMin(100, claimants), (std::vector<double>{50, 10, 40}));
}

TEST(WeightedMaxMin, CutsMinsAlikeWhenTheyDoNotFit) {
  const std::vector<Claimant> claimants = {{.demand = 90, .min = 60}, {.demand = 90, .min = 20}};
  EXPECT_EQ(WeightedMaxMin(40, claimants), (std::vector<double>{30, 10}));
}

TEST(WeightedMaxMin, HasNothingToGive) {
  EXPECT_EQ(WeightedMaxMin(0, std::vector<Claimant>{{.demand = 5}}), std::vector<double>{0});
  EXPECT_EQ(WeightedMaxMin(-1, std::vector<Claimant>{{.demand = 5, .min = 1}}),
            std::vector<double>{0});
  EXPECT_TRUE(WeightedMaxMin(10, std::vector<Claimant>{}).empty());
}

TEST(WeightedMaxMin, KeepsItsLaws) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 2000; ++round) {
    const std::vector<Claimant> claimants = RandomClaimants(random);
    const double capacity = static_cast<double>(random() % 1500);
    const std::vector<double> shares = WeightedMaxMin(capacity, claimants);
    ASSERT_LE(Sum(shares), capacity + 1e-6);
    double highs = 0;
    double lows = 0;
    for (const auto& claimant : claimants) {
      highs += HighOf(claimant);
      lows += std::min(claimant.min, HighOf(claimant));
    }
    ASSERT_NEAR(Sum(shares), std::min(capacity, highs), 1e-6) << "nothing is left lying";
    // The level of those that could rise. Nobody above it got more than its min.
    double lowest_hungry = 1e18;
    for (size_t i = 0; i < shares.size(); ++i) {
      ASSERT_LE(shares[i], HighOf(claimants[i]) + 1e-9);
      if (lows <= capacity) {
        ASSERT_GE(shares[i], std::min(claimants[i].min, HighOf(claimants[i])) - 1e-9);
      }
      if (shares[i] < HighOf(claimants[i]) - 1e-9) {
        lowest_hungry = std::min(lowest_hungry, shares[i] / claimants[i].weight);
      }
    }
    for (size_t i = 0; lows <= capacity && i < shares.size(); ++i) {
      if (shares[i] / claimants[i].weight <= lowest_hungry + 1e-6) continue;
      ASSERT_LE(shares[i], claimants[i].min + 1e-6) << "taken from somebody hungrier";
    }
  }
}

TEST(WeightedMaxMin, GivesNobodyLessOfMore) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 500; ++round) {
    const std::vector<Claimant> claimants = RandomClaimants(random);
    const double capacity = static_cast<double>(random() % 1500);
    const auto less = WeightedMaxMin(capacity, claimants);
    const auto more = WeightedMaxMin(capacity + 50, claimants);
    for (size_t i = 0; i < less.size(); ++i) ASSERT_GE(more[i], less[i] - 1e-6);
  }
}

TEST(WeightedMaxMin, DoesNotMindTheOrder) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 500; ++round) {
    std::vector<Claimant> claimants = RandomClaimants(random);
    const auto shares = WeightedMaxMin(300, claimants);
    std::reverse(claimants.begin(), claimants.end());
    const auto reversed = WeightedMaxMin(300, claimants);
    for (size_t i = 0; i < shares.size(); ++i) {
      ASSERT_NEAR(shares[i], reversed[shares.size() - 1 - i], 1e-6);
    }
  }
}

}  // namespace
}  // namespace spoke::base
