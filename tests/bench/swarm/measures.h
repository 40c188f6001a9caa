// The findings of a run of the swarm, as JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tests/bench/swarm/swarm.h"

namespace spoke::swarm {

using Json = nlohmann::ordered_json;

// Tells how long agents took from their first attempt to the acknowledgement of all their
// addresses. `timeout`: an agent that took longer, or is not there yet, has timed out. `started`:
// NowNs() when the first could begin. Every time in seconds.
Json DescribeProgress(const std::vector<Swarm::Progress>& progress, int64_t started,
                      absl::Duration timeout);

// Tells what is wrong, how streams ended, and what this process has used.
Json DescribeSwarm(const Swarm& swarm);

// Writes "address, node, state, container, known" a line, tab-separated, in no order: state is
// available, in use, in cooldown or withdrawn; known is 1 when the server has acknowledged that
// state, and so must still know it after any crash. Errors: those of writing the file, which is
// replaced whole.
absl::Status WriteHoldings(Swarm& swarm, const std::string& path);

}  // namespace spoke::swarm
