// Where a node learns what maintenance is announced for it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/node_api/maintenance.h"

namespace spoke::netagent {

// One thread calls Read() and Begin(), which may block; Interrupt() is for any thread.
class MaintenanceSource {
 public:
  virtual ~MaintenanceSource() = default;

  // Returns all that is announced for this node now. Errors, which name the source: kUnavailable
  // (it does not answer now), kInvalidArgument (what it says cannot be read), kFailedPrecondition
  // (it refuses), kCancelled (after Interrupt()).
  virtual absl::StatusOr<node_api::Maintenance> Read() = 0;

  // Agrees that these events begin now, for all their machines. Errors: as Read().
  virtual absl::Status Begin(const std::vector<std::string>& events) = 0;

  // Ends the call under way, and all to come.
  virtual void Interrupt() = 0;
};

}  // namespace spoke::netagent
