// When a program's own TLS certificate ends, as metrics. Thread-safe (no state).
#pragma once

#include <vector>

#include "lib/rpc/credentials.h"
#include "lib/telemetry/metrics.h"

namespace spoke::rpc {

// Returns what has to be part of the program's table; AddSource() gives the samples.
std::vector<telemetry::MetricSpec> CertificateMetricSpecs();

// Reads the certificate now, as it may be replaced while the program runs. Returns nothing without
// TLS, and while the file cannot be read: it may come later.
std::vector<telemetry::Samples> CertificateSamples(const TlsFiles& files);

}  // namespace spoke::rpc
