// What operators want. On an error nothing has changed. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ipam-server/ledger/effects.h"
#include "ipam-server/ledger/fleet.h"
#include "ipam-server/ledger/node_record.h"
#include "ipam-server/pools/address_pool.h"
#include "lib/ip/address.h"

namespace spoke::ipam {

// Errors: kNotFound; kFailedPrecondition (retired).
absl::StatusOr<Effects> SetMode(Fleet& fleet, const std::string& name, NodeMode mode,
                                absl::Time now);

// Asks the cloud for the node's NIC at once, whatever it refused before. Errors: kNotFound,
// kFailedPrecondition (retired, or a recovery is under way).
absl::StatusOr<Effects> Retry(Fleet& fleet, const std::string& node);

// A machine that an operator takes for gone.
struct Farewell {
  std::string node;
  std::string vm_id;    // Empty: the only one under the name.
  uint64_t in_use = 0;  // Addresses that its pods used, as the operator has read.
  // The machines under the name whose agents have no session, with the epoch of their last.
  std::map<NodeKey, uint64_t> silent;
};
struct Forgotten {
  NodeKey node;
  uint64_t addresses = 0;  // Addresses that are free after the cooldown.
  Effects effects;
};

// Ends the record of a machine that is gone: its addresses are free after the cooldown. Errors:
// kNotFound, kInvalidArgument (several machines have the name), kFailedPrecondition (its agent is
// connected; the cloud has not said that it is gone, where clouds know; another number of its
// addresses is in use than `farewell` says; or a recovery is under way).
absl::StatusOr<Forgotten> Forget(Fleet& fleet, const Farewell& farewell, absl::Time now);

// Asks for an available address. Errors: kNotFound (in no pool, or free); kFailedPrecondition
// (assigned, in cooldown, or held by another node than `node`, when that is not empty; or a
// recovery is under way).
absl::StatusOr<Effects> Release(const Fleet& fleet, const ip::Address& address,
                                const std::string& node);
// Has the agent end the assignment of `address`, whose pod's end was lost. It is over once the
// agent reports so. Errors: kInvalidArgument (no reason); kNotFound, kFailedPrecondition (not
// assigned; else as Release()).
absl::StatusOr<Effects> ForceRelease(const Fleet& fleet, const ip::Address& address,
                                     const std::string& node, const std::string& reason);

// Replaces the pools, and says anew where promised addresses are to come from. All agents are told,
// if anything has changed: a pod waits for an address of each family that its node has pools of,
// and would wait for one of a pool that has gone. What pods use already of a new pool is its
// node's, which says anew whose it is. Errors: as Ledger::SetPools().
absl::StatusOr<Effects> SetPools(Fleet& fleet, const std::vector<PoolSpec>& specs, absl::Time now);

// Lifts the breaker's freeze, if there is one.
Effects LiftFreeze(Fleet& fleet, absl::Time now);

}  // namespace spoke::ipam
