// Reads what a server's store says when no server runs, and whether the agents it served agree.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ipam-server/ledger/node_record.h"
#include "tests/bench/swarm/swarm.h"

namespace spoke::crash {

using StoredNodes = std::map<std::string, ipam::NodeRecord>;  // The nodes by name; each has one VM.

// Opens the store, which should be a copy: that alone changes it. Errors: as OpenSqliteStore();
// kDataLoss (damage of any kind, or two records of one name).
absl::StatusOr<StoredNodes> ReadStore(const std::string& path);

enum class Moment {
  // The server was killed at work: it must have what it has acknowledged, and may have more.
  kKilled,
  // Nothing is on its way: both must say exactly the same.
  kAtRest,
};

// Returns every disagreement, in words; none is what is hoped for. The swarm must not have been
// told anything by a server that is younger than the store.
std::vector<std::string> FindDisagreements(const StoredNodes& nodes, swarm::Swarm& swarm,
                                           Moment moment);

}  // namespace spoke::crash
