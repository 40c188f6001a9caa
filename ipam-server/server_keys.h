// What of the server has to do with keys, opened once its store is: the seal key, the key of the
// store's marks, and the authority with all that enrollment needs.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ipam-server/config.h"
#include "ipam-server/enroll/enrollment.h"
#include "ipam-server/loop/store_witness.h"
#include "ipam-server/revocation/revocations.h"
#include "ipam-server/store/store.h"
#include "lib/os/clock.h"
#include "lib/telemetry/log.h"

namespace spoke::ipam {

struct ServerKeys {
  StoreWitness witness;
  std::unique_ptr<Enrollment> enrollment;  // nullptr: agents get certificates by other means.

  ClusterAuthority* authority() const {
    return enrollment == nullptr ? nullptr : &enrollment->authority();
  }
};

// What the keys need, borrowed. `clock` tells the time of day; `margin`: as EnrollService::Edges.
struct KeyEdges {
  Store& store;
  const Revocations& revocations;
  const os::Clock& clock;
  telemetry::Log& log;
  std::function<absl::Duration()> margin;
  bool trusts_mark = true;  // As ServerEdges::trusts_mark.
};

// Errors: as OpenSealKey(), FormerMarkKey(), StoreWitness::Open() and
// Enrollment::Open(); kFailedPrecondition (enrollment, and not in a cluster). Without
// seal_key_file, where the store's secrets are sealed: kFailedPrecondition; nothing was changed.
absl::StatusOr<ServerKeys> OpenKeys(const ServerConfig& config, const KeyEdges& edges);

}  // namespace spoke::ipam
