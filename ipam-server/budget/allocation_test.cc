#include "ipam-server/budget/allocation.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>

#include "gtest/gtest.h"
#include "tests/support/random_seed.h"

namespace spoke::ipam {
namespace {

using testing_support::Random;

using Rate = units::FractionalBitRate;

constexpr int kCases = 3000;
constexpr double kExact = 1e-9;  // Parts of a pool.

// Sorts: those that want least are served first, each at most an equal part of what is left.
double SlowLevel(double share, std::vector<float> demands) {
  std::sort(demands.begin(), demands.end());
  double rest = share;
  for (size_t i = 0; i < demands.size(); ++i) {
    const double part = rest / static_cast<double>(demands.size() - i);
    if (static_cast<double>(demands[i]) > part) return part;
    rest -= static_cast<double>(demands[i]);
  }
  return demands.empty() ? 0 : static_cast<double>(demands.back());
}

double UsedOf(Rate level, const std::vector<float>& demands) {
  double sum = 0;
  for (const float demand : demands) sum += std::min(static_cast<double>(demand), level.count());
  return sum;
}

struct Case {
  BudgetSpec spec;
  double pool = 0;
  std::vector<TeamDemands> demands;
};

float SomeDemand(Random& random) {
  if (random.OneIn(3)) return 0;
  if (random.OneIn(4)) return 1e6F;  // Equal ones.
  return static_cast<float>(random.Between(1, 1'000'000)) *
         static_cast<float>(random.OneIn(10) ? 10'000 : 10);
}

Case SomeCase(Random& random) {
  Case made;
  made.spec.borrow = !random.OneIn(4);
  const size_t teams = random.Between(1, 8);
  const size_t nodes = random.Between(0, 40);
  for (size_t i = 0; i < teams; ++i) {
    BudgetTeam team{.name = std::to_string(i)};
    team.weight = static_cast<double>(random.Between(1, 50)) / 10;
    if (random.OneIn(3)) team.min = units::BitRate(random.Between(0, 20'000'000));
    if (random.OneIn(3)) team.max = team.min + units::BitRate(random.Between(1, 100'000'000));
    made.spec.teams.push_back(team);
    made.demands.emplace_back();
    for (size_t node = 0; node < nodes; ++node) {
      made.demands.back().by_node.push_back(SomeDemand(random));
    }
  }
  made.pool = static_cast<double>(random.Between(0, 2'000'000'000));
  return made;
}

double SumOf(const TeamDemands& team) {
  return std::accumulate(team.by_node.begin(), team.by_node.end(), 0.0);
}

double Used(const Case& made, const std::vector<TeamAllocation>& allocations) {
  double sum = 0;
  for (size_t i = 0; i < allocations.size(); ++i) {
    sum += UsedOf(allocations[i].level, made.demands[i].by_node);
  }
  return sum;
}

TEST(NodeLevel, IsTheLevelThatSortingFinds) {
  Random random;
  for (int i = 0; i < kCases; ++i) {
    std::vector<float> demands(random.Between(0, 60));
    for (float& demand : demands) demand = SomeDemand(random);
    const double sum = std::accumulate(demands.begin(), demands.end(), 0.0);
    const double share = sum * random.Fraction() * 1.2;
    const Rate level = NodeLevel(Rate(share), demands);
    ASSERT_NEAR(level.count(), SlowLevel(share, demands), std::max(1.0, level.count()) * kExact);
    ASSERT_LE(UsedOf(level, demands), share * (1 + 1e-15));
  }
}

TEST(NodeLevel, IsTheHighestDemandWhenAllFit) {
  EXPECT_EQ(NodeLevel(Rate(100), {1, 7, 3}).count(), 7);
  EXPECT_EQ(NodeLevel(Rate(100), {}).count(), 0);
  EXPECT_EQ(NodeLevel(Rate(0), {1, 2}).count(), 0);
  EXPECT_NEAR(NodeLevel(Rate(6), {1, 7, 3}).count(), 2.5, 1e-9);
}

TEST(Allocate, NeverGivesMoreThanThePool) {
  Random random;
  for (int i = 0; i < kCases; ++i) {
    const Case made = SomeCase(random);
    ASSERT_LE(Used(made, Allocate(made.spec, Rate(made.pool), made.demands)), made.pool);
  }
}

TEST(Allocate, KeepsMinAndMax) {
  Random random;
  for (int i = 0; i < kCases; ++i) {
    const Case made = SomeCase(random);
    const auto allocations = Allocate(made.spec, Rate(made.pool), made.demands);
    double mins = 0;
    for (size_t j = 0; j < allocations.size(); ++j) {
      const BudgetTeam& team = made.spec.teams[j];
      if (!team.max.is_zero()) {
        ASSERT_LE(allocations[j].share.count(), static_cast<double>(team.max.count()));
      }
      mins += std::min(static_cast<double>(team.min.count()), SumOf(made.demands[j]));
    }
    if (mins > made.pool * (1 - kExact)) continue;
    for (size_t j = 0; j < allocations.size(); ++j) {
      const double least =
          std::min(static_cast<double>(made.spec.teams[j].min.count()), SumOf(made.demands[j]));
      ASSERT_GE(allocations[j].share.count(), least * (1 - kExact));
    }
  }
}

TEST(Allocate, LeavesNothingUnusedThatSomebodyWantsAndMayHave) {
  Random random;
  for (int i = 0; i < kCases; ++i) {
    const Case made = SomeCase(random);
    const auto allocations = Allocate(made.spec, Rate(made.pool), made.demands);
    const std::vector<Rate> bounds = TeamBounds(made.spec, Rate(made.pool));
    double wanted = 0;
    for (size_t j = 0; j < bounds.size(); ++j) {
      wanted += std::min(bounds[j].count(), SumOf(made.demands[j]));
    }
    ASSERT_NEAR(Used(made, allocations), std::min(wanted, made.pool),
                std::max(made.pool, 1.0) * kExact);
  }
}

TEST(Allocate, GivesTeamsTheirWeightedMaxMinShares) {
  Random random;
  for (int i = 0; i < kCases; ++i) {
    const Case made = SomeCase(random);
    const auto allocations = Allocate(made.spec, Rate(made.pool), made.demands);
    const std::vector<Rate> bounds = TeamBounds(made.spec, Rate(made.pool));
    // A team above its min that does not get all it could use has a level (share for its weight)
    // that no other team above its min exceeds.
    double lowest = std::numeric_limits<double>::infinity();
    for (size_t j = 0; j < bounds.size(); ++j) {
      const double could = std::min(bounds[j].count(), SumOf(made.demands[j]));
      if (allocations[j].share.count() < could * (1 - kExact)) {
        lowest = std::min(lowest, allocations[j].share.count() / made.spec.teams[j].weight);
      }
    }
    for (size_t j = 0; j < bounds.size(); ++j) {
      const BudgetTeam& team = made.spec.teams[j];
      if (allocations[j].share.count() <= static_cast<double>(team.min.count()) * (1 + kExact))
        continue;
      ASSERT_LE(allocations[j].share.count() / team.weight, lowest * (1 + kExact) + 1e-3);
    }
  }
}

TEST(Allocate, GivesNobodyLessOfALargerPool) {
  Random random;
  for (int i = 0; i < kCases; ++i) {
    const Case made = SomeCase(random);
    const double larger = made.pool * (1 + random.Fraction());
    const auto before = Allocate(made.spec, Rate(made.pool), made.demands);
    const auto after = Allocate(made.spec, Rate(larger), made.demands);
    for (size_t j = 0; j < before.size(); ++j) {
      ASSERT_GE(after[j].share.count(), before[j].share.count() * (1 - kExact) - 1e-3);
      ASSERT_GE(after[j].level.count(), before[j].level.count() * (1 - kExact) - 1e-3);
    }
  }
}

TEST(Allocate, DoesNotDependOnTheOrderOfTeamsOrNodes) {
  Random random;
  for (int i = 0; i < kCases; ++i) {
    const Case made = SomeCase(random);
    Case turned = made;
    std::reverse(turned.spec.teams.begin(), turned.spec.teams.end());
    std::reverse(turned.demands.begin(), turned.demands.end());
    for (TeamDemands& team : turned.demands) {
      std::reverse(team.by_node.begin(), team.by_node.end());
    }
    const auto one = Allocate(made.spec, Rate(made.pool), made.demands);
    auto other = Allocate(turned.spec, Rate(turned.pool), turned.demands);
    std::reverse(other.begin(), other.end());
    for (size_t j = 0; j < one.size(); ++j) {
      ASSERT_NEAR(one[j].share.count(), other[j].share.count(), std::max(made.pool, 1.0) * kExact);
      ASSERT_NEAR(one[j].level.count(), other[j].level.count(), std::max(made.pool, 1.0) * kExact);
    }
  }
}

TEST(Allocate, GivesOthersNothingWhenTeamsMayNotBorrow) {
  BudgetSpec spec;
  spec.teams = {{.name = "*", .weight = 1}, {.name = "a", .weight = 3}, {.name = "b", .weight = 1}};
  const std::vector<TeamDemands> demands{{{1000}}, {{1000}}, {{}}};
  spec.borrow = false;
  auto allocations = Allocate(spec, Rate(500), demands);
  EXPECT_NEAR(allocations[0].share.count(), 100, 1e-6);
  EXPECT_NEAR(allocations[1].share.count(), 300, 1e-6);
  spec.teams[0].min = units::BitRate(150);
  allocations = Allocate(spec, Rate(500), demands);
  EXPECT_NEAR(allocations[0].share.count(), 150, 1e-6);
  spec.borrow = true;
  allocations = Allocate(spec, Rate(500), demands);
  EXPECT_NEAR(allocations[0].share.count(), 150, 1e-6);
  EXPECT_NEAR(allocations[1].share.count(), 350, 1e-6);
}

TEST(Allocate, HoldsWithDemandsAsLargeAsTheyCome) {
  BudgetSpec spec;
  spec.teams = {{.name = "*"}, {.name = "a"}};
  std::vector<TeamDemands> demands(2);
  demands[0].by_node.assign(7500, 1e12F);
  demands[1].by_node.assign(7500, 1.0F);
  const auto allocations = Allocate(spec, Rate(1e12), demands);
  EXPECT_NEAR(allocations[1].share.count(), 7500, 1e-3);
  EXPECT_NEAR(allocations[0].level.count(), (1e12 - 7500) / 7500, 1);
}

}  // namespace
}  // namespace spoke::ipam
