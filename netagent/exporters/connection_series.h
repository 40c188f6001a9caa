// The connections of a node's pods as series of metrics, few of them however many pods there are.
// Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/telemetry/samples.h"
#include "netagent/connections/connection_tally.h"

namespace spoke::netagent {

// The least connections for which a pod has a series of its own, so that series do not come and go
// with every pod.
inline constexpr uint64_t kConnectionsShown = 1'000;

// Returns spoke_pod_connections and spoke_pod_translated_ports: those of the pods with most
// connections, `most` of them at most, and of all others together as "_other".
std::vector<telemetry::Samples> ConnectionSeries(const std::vector<PodConnections>& pods,
                                                 size_t most);

}  // namespace spoke::netagent
