// Who leads, and how far a standby follows, as metrics. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "lib/telemetry/samples.h"

namespace spoke::ipam {

struct LeadershipSample {
  // A standby's.
  struct Mirror {
    int64_t records = 0;
    int64_t revision = 0;
    int64_t full_reads = 0;
    int64_t broken_watches = 0;
    absl::Duration age;
  };

  std::string leader;                    // Empty: nobody leads.
  std::optional<absl::Duration> margin;  // The leader's, with etcd.
  std::optional<Mirror> mirror;          // Absent: this server leads.
};

std::vector<telemetry::Samples> LeadershipSamples(const LeadershipSample& sample);

}  // namespace spoke::ipam
