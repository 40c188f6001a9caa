// How near the cloud's limits are, as Prometheus gets it, read at each scrape. Pure.
#pragma once

#include <vector>

#include "ipam-server/cloud/nic_request.h"
#include "lib/telemetry/metrics.h"
#include "lib/telemetry/samples.h"

namespace spoke::ipam {

// The rows of the table that they fill.
std::vector<telemetry::MetricSpec> CloudLoadMetricSpecs();

std::vector<telemetry::Samples> CloudLoadSamples(const CloudLoad& load);

}  // namespace spoke::ipam
