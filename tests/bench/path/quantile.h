// Returns which of several samples stands at a share of them. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace spoke::path_bench {

// `values` must not be empty; it is sorted afterwards. 0.25 is the lower quartile: what is measured
// on a machine that does other things too is disturbed upwards only.
inline double Quantile(std::vector<double>& values, double share) {
  std::sort(values.begin(), values.end());
  const auto at = static_cast<size_t>(static_cast<double>(values.size()) * share);
  return values[std::min(values.size() - 1, at)];
}

}  // namespace spoke::path_bench
