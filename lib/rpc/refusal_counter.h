// Counts whom a port has refused, and why.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "lib/rpc/peer_gate.h"

namespace spoke::rpc {

// The counters. Thread-safe; they only rise. Those who read it share it with the port: a scrape may
// outlive that.
class RefusalCounter {
 public:
  void Add(Refusal refusal) {
    counts_[static_cast<size_t>(refusal)].fetch_add(1, std::memory_order_relaxed);
  }
  RefusalCounts counts() const {
    RefusalCounts out{};
    for (size_t i = 0; i < kRefusals; ++i) out[i] = counts_[i].load(std::memory_order_relaxed);
    return out;
  }

 private:
  std::array<std::atomic<uint64_t>, kRefusals> counts_{};
};

}  // namespace spoke::rpc
