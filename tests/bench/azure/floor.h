// The speed that no client could beat. Pure.
#pragma once

#include "absl/time/time.h"
#include "tests/azure-sim/knobs.h"

namespace spoke::azure_bench {

// Returns how long it takes until `writes` writes have been let through, one to a VM, all of one
// subscription and region, by a client that knows every limit and its phase exactly, with
// `identities`; from the beginning of a minute on which all buckets are full. The slowest of them
// then takes `latency.most` more.
absl::Duration WriteFloor(int writes, int identities, const azure_sim::Limits& limits);

}  // namespace spoke::azure_bench
