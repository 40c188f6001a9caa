// The cloud of the configuration, with what it takes to ask it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ipam-server/cloud/azure/settings.h"
#include "ipam-server/cloud/cloud.h"
#include "ipam-server/telemetry/server_metrics.h"
#include "lib/os/clock.h"
#include "lib/telemetry/log.h"

namespace spoke::ipam {

// Thread-safe, except Open() and Stop().
class CloudEdge {
 public:
  struct Options {
    std::optional<azure::Settings> azure;  // Absent: the static cloud.
    std::string attachments_file;          // Where that publishes who has what; empty: nowhere.
  };
  struct Edges {
    const os::Clock& clock;
    telemetry::Log& log;
    ServerMetrics& metrics;
  };
  using Answer = std::function<void(const NodeKey&, absl::StatusOr<NicAddresses>)>;

  // Borrows the edges. `answer` is called on a thread of the cloud's own, until Stop().
  // Errors: kInternal (no random numbers).
  static absl::StatusOr<std::unique_ptr<CloudEdge>> Open(Options options, const Edges& edges,
                                                         Answer answer);
  virtual ~CloudEdge() = default;

  virtual Cloud& cloud() = 0;
  virtual CloudRequests& requests() = 0;
  // How often it is to be asked which VMs there are.
  virtual absl::Duration listing_period() const = 0;
  // Finishes or drops what is under way; who waits for a listing is told so.
  virtual void Stop() = 0;
};

}  // namespace spoke::ipam
