#include "tests/bench/swarm/latencies.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "lib/base/check.h"

namespace spoke::swarm {

size_t Histogram::BucketOf(uint64_t value) {
  if (value < kSteps) return value;
  const auto exponent = static_cast<size_t>(std::bit_width(value)) - 1;
  // The three bits below the highest one say which eighth.
  const size_t step = (value >> (exponent - 3)) & (kSteps - 1);
  return (exponent - 2) * kSteps + step;
}

int64_t Histogram::UpperBound(size_t bucket) {
  if (bucket < kSteps) return static_cast<int64_t>(bucket);
  const size_t exponent = bucket / kSteps + 2;
  const uint64_t step = bucket % kSteps + kSteps + 1;
  return static_cast<int64_t>((step << (exponent - 3)) - 1);
}

void Histogram::Add(int64_t nanoseconds) {
  const auto value = static_cast<uint64_t>(std::max<int64_t>(nanoseconds, 0));
  buckets_[BucketOf(value)].fetch_add(1, std::memory_order_relaxed);
}

uint64_t Histogram::count() const {
  uint64_t total = 0;
  for (const auto& bucket : buckets_) total += bucket.load(std::memory_order_relaxed);
  return total;
}

int64_t Histogram::Quantile(double quantile) const {
  const uint64_t total = count();
  if (total == 0) return 0;
  const double wanted = std::ceil(quantile * static_cast<double>(total));
  uint64_t seen = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    seen += buckets_[i].load(std::memory_order_relaxed);
    if (seen > 0 && static_cast<double>(seen) >= wanted) return UpperBound(i);
  }
  return UpperBound(buckets_.size() - 1);
}

void Histogram::Reset() {
  for (auto& bucket : buckets_) bucket.store(0, std::memory_order_relaxed);
}

double QuantileOf(std::vector<double> values, double quantile) {
  CHECK(!values.empty(), "a quantile of nothing is nothing");
  std::sort(values.begin(), values.end());
  const double rank = std::ceil(quantile * static_cast<double>(values.size()));
  const auto index = static_cast<size_t>(std::max(rank, 1.0)) - 1;
  return values[std::min(index, values.size() - 1)];
}

}  // namespace spoke::swarm
