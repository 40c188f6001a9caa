// The present rates of many names, from readings of totals. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>

namespace spoke::ctl {

// Not thread-safe.
class PresentRates {
 public:
  static constexpr int64_t kSpanMs = 10'000;  // The shortest time that a rate is of.

  // Adds a reading of bytes by name. One that is too close to the last is passed over; one that is
  // older than the last, as after the server's clock was set, begins anew. A total that has fallen
  // did not move.
  void Add(int64_t now_ms, std::map<std::string, uint64_t> totals);

  // Returns bits a second since the reading before the last; empty: there is none that is old
  // enough.
  std::map<std::string, double> BitsPerSecond() const;

 private:
  struct Reading {
    int64_t ms;
    std::map<std::string, uint64_t> totals;
  };
  std::deque<Reading> readings_;
};

}  // namespace spoke::ctl
