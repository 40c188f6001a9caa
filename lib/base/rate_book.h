// How often each of many may do something that all share: so many at once, and then one in each
// interval. Pure: time is an argument.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"

namespace spoke::base {

// A rate of `burst` at once, and then one every `refill`.
struct Rate {
  uint32_t burst = 1;
  absl::Duration refill = absl::Seconds(1);
};

// Who has used how much of a rate. Remembers at most `max_keys` of those whose share is not full
// again; who comes beyond them is let through, since others must not be locked out by a flood. Not
// thread-safe.
class RateBook {
 public:
  RateBook(Rate rate, size_t max_keys) : rate_(rate), max_keys_(max_keys) {}

  // Returns how long `key` has to wait; zero: not at all, and this counts. A clock that is set back
  // keeps nobody waiting for longer than `refill`.
  absl::Duration Take(std::string_view key, absl::Time now);
  size_t size() const { return full_at_.size(); }

 private:
  const Rate rate_;
  const size_t max_keys_;
  absl::flat_hash_map<std::string, absl::Time> full_at_;  // When its share is full again.
  absl::Time next_sweep_ = absl::InfinitePast();
};

}  // namespace spoke::base
