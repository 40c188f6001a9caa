// Makes the cloud of the configuration, with what it takes to ask it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ipam-server/cloud/azure/settings.h"
#include "ipam-server/cloud/cloud.h"
#include "ipam-server/telemetry/server_metrics.h"
#include "lib/os/clock.h"
#include "lib/telemetry/log.h"

namespace spoke::ipam {

struct CloudOptions {
  std::optional<azure::Settings> azure;  // Absent: the static cloud.
  std::string attachments_file;          // Where that publishes who has what; empty: nowhere.
};

struct CloudEdges {
  const os::Clock& clock;
  telemetry::Log& log;
  ServerMetrics& metrics;
  // Returns how long no other server can lead, from now on: nothing is written to Azure that could
  // still be leaving after that (azure::kWriteMargin). Called on the cloud's thread. The static
  // cloud does not ask: its file is on this machine.
  std::function<absl::Duration()> write_margin = [] { return absl::InfiniteDuration(); };
};

// Borrows the edges. `answer` is called on a thread of the cloud's own, until Stop().
// Errors: kInternal (no random numbers).
absl::StatusOr<std::unique_ptr<Cloud>> OpenCloud(CloudOptions options, const CloudEdges& edges,
                                                 CloudAnswer answer);

}  // namespace spoke::ipam
