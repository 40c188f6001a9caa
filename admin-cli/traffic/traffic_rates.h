// Rates from readings of totals, and their course. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace spoke::ctl {

// The bytes so far.
struct TrafficTotal {
  uint64_t sent = 0;
  uint64_t received = 0;

  bool operator==(const TrafficTotal&) const = default;
};

// The bytes each second.
struct TrafficRate {
  double sent = 0;
  double received = 0;
};

// The key of a total: a name, and for a pod its node.
using TrafficKey = std::pair<std::string, std::string>;
using TrafficTotals = std::map<TrafficKey, TrafficTotal>;

// The readings. Not thread-safe.
class TrafficRates {
 public:
  // The span of a rate. Agents report every ten seconds: between readings closer to each other most
  // totals stand still.
  static constexpr int64_t kSpanMs = 10'000;
  static constexpr size_t kMaxReadings = 64;
  static constexpr size_t kTrend = 20;  // The rates remembered of each.

  // Readings come in order. A reading of the same time as the last one is passed over.
  void Add(int64_t now_ms, TrafficTotals totals);

  // Returns the rate from the last reading that is kSpanMs older than the newest, or else the
  // oldest, to the newest; nullopt: there is one reading only. A total that was not there before
  // began at 0, and one that has fallen did not move.
  std::optional<TrafficRate> RateOf(const TrafficKey& key) const;

  // Returns sent and received together, after each reading except the first, oldest first.
  std::vector<double> TrendOf(const TrafficKey& key) const;

 private:
  struct Reading {
    int64_t now_ms;
    TrafficTotals totals;
  };
  std::deque<Reading> readings_;
  std::map<TrafficKey, std::deque<double>> trends_;
};

// Returns one character for each value, from the lowest block for 0 to the full one for the
// largest.
std::string Sparkline(const std::vector<double>& values);
// Does the same with the full one for `full` and what is above it.
std::string Sparkline(const std::vector<double>& values, double full);

}  // namespace spoke::ctl
