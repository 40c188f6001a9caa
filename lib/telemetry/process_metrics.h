// The metrics that Prometheus expects of every process (process_*): processor time, memory,
// descriptors, threads.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/telemetry/metrics.h"

namespace spoke::telemetry {

// The fields of /proc/PID/stat; see proc(5).
struct ProcessStat {
  double cpu_seconds = 0;
  double start_seconds_after_boot = 0;
  uint64_t resident_bytes = 0;
  uint64_t virtual_bytes = 0;
  uint64_t threads = 0;
};

// Reads the file. Pure. Errors: kInvalidArgument (not the text of that file).
absl::StatusOr<ProcessStat> ParseProcessStat(std::string_view text);

// Returns what has to be part of the program's table.
std::vector<MetricSpec> ProcessMetricSpecs();

// Keeps the metrics up to date, at each scrape. Call it once.
void AddProcessMetrics(Metrics& metrics);

}  // namespace spoke::telemetry
