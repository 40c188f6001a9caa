// The writing of taints and conditions as Prometheus gets it, read at each scrape. Pure.
#pragma once

#include <vector>

#include "ipam-server/nodes/standing.h"
#include "lib/telemetry/metrics.h"
#include "lib/telemetry/samples.h"

namespace spoke::ipam {

// The rows of the table that they fill.
std::vector<telemetry::MetricSpec> KubernetesMetricSpecs();

std::vector<telemetry::Samples> KubernetesSamples(const NodesStanding& standing);

}  // namespace spoke::ipam
