// The time that things took: a histogram for millions of short ones, exact quantiles for thousands.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace spoke::swarm {

// The histogram. Thread-safe, without locks. Buckets are an eighth of a power of two wide, so that
// a quantile is at most 12.5 % above the truth. In nanoseconds.
class Histogram {
 public:
  void Add(int64_t nanoseconds);
  // Returns the upper bound of the bucket where the share `quantile` of all is reached; 0 when
  // empty.
  int64_t Quantile(double quantile) const;
  uint64_t count() const;
  void Reset();

 private:
  static constexpr size_t kSteps = 8;
  static size_t BucketOf(uint64_t value);
  static int64_t UpperBound(size_t bucket);

  std::array<std::atomic<uint64_t>, 64 * kSteps> buckets_{};
};

// Returns the smallest value that at least the share `quantile` of `values` does not exceed.
// `values` must not be empty.
double QuantileOf(std::vector<double> values, double quantile);

}  // namespace spoke::swarm
