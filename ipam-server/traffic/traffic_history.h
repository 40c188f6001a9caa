// Rates of traffic over the last hour, from readings of totals. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spoke::ipam {

// Bytes so far, by traffic class and name.
using ClassTotals = std::map<std::pair<std::string, std::string>, uint64_t>;

// The rates of some names over time. Each name has as many rates as there are times.
struct TrafficCourse {
  struct Line {
    std::string name;
    std::vector<double> bits_per_second;
  };
  std::vector<int64_t> times_ms;  // The end of the time that a rate is of; oldest first.
  std::vector<Line> lines;        // The most traffic first.
};

// Not thread-safe. Memory is bounded: of each reading it keeps kMostNames rates of each class, so
// that a name with little traffic counts as none where others had more.
class TrafficHistory {
 public:
  static constexpr int64_t kKeptMs = 3'600'000;
  // The shortest time between two readings.
  static constexpr int64_t kStepMs = 30'000;
  static constexpr size_t kMostNames = 16;

  // Whether Add() would take a reading now.
  bool IsDue(int64_t now_ms) const {
    return !has_last_ || now_ms < last_ms_ || now_ms - last_ms_ >= kStepMs;
  }

  // Adds a reading. One that is too close to the last is passed over; one that is older than the
  // last, as after the server's clock was set, begins anew. A total that has fallen did not move.
  void Add(int64_t now_ms, ClassTotals totals);

  // Returns the `most` names, at most kMostNames, with most traffic of the class over the time that
  // is kept. "external" is all that leaves the cluster's networks, and "all" is every class
  // together.
  TrafficCourse Of(std::string_view traffic_class, size_t most) const;

  // Returns the classes that have had traffic, sorted.
  std::vector<std::string> Classes() const;

 private:
  using Rates = std::map<std::string, double>;  // Bits a second by name.
  struct Point {
    int64_t ms;
    std::map<std::string, Rates> classes;
  };
  int64_t last_ms_ = 0;
  ClassTotals last_;
  bool has_last_ = false;
  std::deque<Point> points_;
};

}  // namespace spoke::ipam
