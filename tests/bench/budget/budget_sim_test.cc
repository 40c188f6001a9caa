#include "gtest/gtest.h"
#include "tests/bench/budget/scenario.h"
#include "tests/support/random_seed.h"

namespace spoke::budget_sim {
namespace {

TEST(BudgetSim, PlaceHolder) {}

}  // namespace
}  // namespace spoke::budget_sim
