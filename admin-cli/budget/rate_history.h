// Shares, and the course of rates. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace spoke::ctl {

// Returns "98 %"; "<1 %" for what is there and less; "-" for a share of nothing.
std::string FormatShare(uint64_t part, uint64_t whole);

// The course of things that are rates by themselves, reading by reading. Not thread-safe.
class RateHistory {
 public:
  static constexpr size_t kReadings = 20;  // The readings remembered of each.

  // A budget and a team, or whatever else the caller tells apart.
  using Key = std::pair<std::string, std::string>;

  // Adds one reading. What is not in it is forgotten.
  void Add(const std::map<Key, uint64_t>& reading);

  // Returns the readings, oldest first; empty: not in the last reading.
  std::vector<double> Of(const Key& key) const;

 private:
  std::map<Key, std::deque<double>> rates_;
};

}  // namespace spoke::ctl
