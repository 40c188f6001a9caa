// The simulation's only source of chance. The same seed gives the same numbers with every compiler
// and library, which the distributions of the C++ library do not promise.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace spoke::sim {

// xoshiro256**, seeded by splitmix64. Not thread-safe.
class Random {
 public:
  explicit Random(uint64_t seed) {
    for (uint64_t& word : state_) {
      seed += 0x9E3779B97F4A7C15ULL;
      uint64_t mixed = seed;
      mixed = (mixed ^ (mixed >> 30U)) * 0xBF58476D1CE4E5B9ULL;
      mixed = (mixed ^ (mixed >> 27U)) * 0x94D049BB133111EBULL;
      word = mixed ^ (mixed >> 31U);
    }
  }

  uint64_t Next() {
    const uint64_t result = Rotate(state_[1] * 5, 7) * 9;
    const uint64_t shifted = state_[1] << 17U;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = Rotate(state_[3], 45);
    return result;
  }
  // Returns a number below `end`, which is positive. The bias is below 2^-32 for small numbers.
  uint64_t Below(uint64_t end) { return Next() % end; }
  // Uniform in [0, 1).
  double Unit() { return static_cast<double>(Next() >> 11U) / static_cast<double>(1ULL << 53U); }
  bool Chance(double probability) { return Unit() < probability; }
  // Whole microseconds, so that nothing depends on how a library rounds.
  absl::Duration Between(absl::Duration least, absl::Duration most) {
    const int64_t span = absl::ToInt64Microseconds(most - least);
    if (span <= 0) return least;
    return least + absl::Microseconds(static_cast<int64_t>(Below(static_cast<uint64_t>(span))));
  }
  template <typename T>
  const T& Pick(const std::vector<T>& from) {
    return from[Below(from.size())];
  }

 private:
  static uint64_t Rotate(uint64_t word, unsigned by) { return (word << by) | (word >> (64 - by)); }

  std::array<uint64_t, 4> state_{};
};

}  // namespace spoke::sim
