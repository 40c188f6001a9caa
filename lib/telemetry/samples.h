// Values of a metric as of one scrape, for what others count and we only pass on. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace spoke::telemetry {

struct Sample {
  std::vector<std::string> labels;  // The values, in the order of the metric's table.
  double value = 0;                 // Of a histogram: the sum of what was counted.
  // Of a histogram alone: how many were in each bucket of the table, and in none of them.
  std::vector<uint64_t> counts = {};

  bool operator==(const Sample&) const = default;
};

// All series of one metric, with each set of labels once.
struct Samples {
  std::string metric;
  std::vector<Sample> series;

  bool operator==(const Samples&) const = default;
};

}  // namespace spoke::telemetry
