// How nodes reach each other, as Prometheus gets it, read at each scrape. Pure.
#pragma once

#include <vector>

#include "ipam-server/nodes/reachability/reachability.h"
#include "lib/telemetry/metrics.h"
#include "lib/telemetry/samples.h"

namespace spoke::ipam {

// The rows of the table that they fill.
std::vector<telemetry::MetricSpec> ReachabilityMetricSpecs();

// `reachability`: nullptr when nothing was judged yet; then there are no series.
std::vector<telemetry::Samples> ReachabilitySamples(const Reachability* reachability);

}  // namespace spoke::ipam
