// The seed of a random test: SPOKE_TEST_SEED when it is set, else a new one. It is printed either
// way, so that a failure can be repeated.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>

#include "fmt/core.h"
#include "gtest/gtest.h"

namespace spoke::testing_support {

// The number of cases a property test tries in one run.
inline constexpr int kRandomCases = 100'000;

inline uint64_t RandomSeed() {
  uint64_t seed = 0;
  if (const char* given = std::getenv("SPOKE_TEST_SEED"); given != nullptr) {
    seed = std::strtoull(given, nullptr, 10);
  } else {
    seed = std::random_device{}();
  }
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  fmt::print("{}: SPOKE_TEST_SEED={}\n", test == nullptr ? "?" : test->name(), seed);
  return seed;
}

// Numbers that one seed decides.
class Random {
 public:
  Random() : engine_(RandomSeed()) {}

  // Returns a number, uniform from `least` to `most`, both included.
  uint64_t Between(uint64_t least, uint64_t most) {
    return least + engine_() % (most - least + 1);  // The bias does not matter to a test.
  }
  bool OneIn(uint64_t chances) { return Between(1, chances) == 1; }
  // Returns a number in [0, 1).
  double Fraction() { return static_cast<double>(engine_() >> 11U) * 0x1.0p-53; }

 private:
  std::mt19937_64 engine_;
};

}  // namespace spoke::testing_support
