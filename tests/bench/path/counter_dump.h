// Measures how long the kernel takes to tell all counters of a node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "lib/netns/netns.h"
#include "nlohmann/json.hpp"

namespace spoke::path_bench {

struct DumpWhat {
  std::string table;      // The table, of the family inet.
  uint32_t fast_map = 0;  // The fast path's counters; 0: there is no fast path.
  size_t rounds = 1;
};

// Measures dumps of every element of every set of the table whose elements count, of every named
// counter, and of the fast path's counters: "elements", "sets", "objects", "fast", and
// "cpu_p25_ms", "cpu_median_ms", "wall_median_ms" for all of it. Nothing is done with what the
// kernel says but to look for the end of it. Errors: kNotFound (no such table, or nothing counts);
// as errno says.
absl::StatusOr<nlohmann::json> MeasureDump(const netns::Netns& where, const DumpWhat& what);

}  // namespace spoke::path_bench
