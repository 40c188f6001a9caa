#include "lib/rpc/certificate_metrics.h"

#include "absl/time/time.h"
#include "lib/os/file.h"
#include "lib/tls/certificate.h"

namespace spoke::rpc {

std::vector<telemetry::MetricSpec> CertificateMetricSpecs() {
  using telemetry::GaugeSpec;
  return telemetry::FromSource(
      {GaugeSpec("spoke_certificate_not_after_seconds",
                 "When the program's own TLS certificate ends, in seconds since 1970"),
       GaugeSpec("spoke_certificate_lifetime_seconds",
                 "How long that certificate is good for in all")});
}

std::vector<telemetry::Samples> CertificateSamples(const TlsFiles& files) {
  if (files.insecure || files.certificate.empty()) return {};
  const auto pem = os::ReadFile(files.certificate);
  if (!pem.ok()) return {};
  const auto facts = tls::ReadCertificate(*pem);
  if (!facts.ok()) return {};
  const auto one = [](const char* metric, absl::Duration value) {
    return telemetry::Samples{.metric = metric, .series = {{{}, absl::ToDoubleSeconds(value)}}};
  };
  return {one("spoke_certificate_not_after_seconds", facts->not_after - absl::UnixEpoch()),
          one("spoke_certificate_lifetime_seconds", facts->not_after - facts->not_before)};
}

}  // namespace spoke::rpc
