// A change of policy objects, put into force as a whole: the store, the pools and what nodes get.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "ipam-server/ledger/effects.h"
#include "ipam-server/loop/mailbox.h"
#include "ipam-server/loop/server_state.h"
#include "ipam-server/policy/object_codec.h"
#include "ipam-server/policy/objects/bundle.h"
#include "ipam-server/policy/objects/object_set.h"
#include "ipam-server/pools/pool_plan.h"

namespace spoke::ipam {

// Not thread-safe; movable from the thread that plans to the loop's.
class PolicyChange {
 public:
  // Encodes and compiles, which takes longer than the loop has time for. `plan` is made of objects
  // of the version `from`.
  PolicyChange(const ServerSettings& settings, const ApplyPlan& plan, uint64_t from);

  // On the loop, once. Returns nullopt, and changes nothing, when the objects are no longer of that
  // version. Errors: as SetPools(); then nothing is changed either.
  absl::StatusOr<std::optional<Effects>> PutIntoForce(ServerState& state, RawRecords& raw,
                                                      absl::Time now);

 private:
  uint64_t from_;
  ObjectSet next_;
  std::vector<PoolSpec> pools_;
  std::vector<PolicyWrite> writes_;
  CompiledPolicy compiled_;
};

}  // namespace spoke::ipam
