#include "lib/rpc/certificate_metrics.h"

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/os/file.h"
#include "lib/tls/authority.h"
#include "tests/support/temp_dir.h"

namespace spoke::rpc {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST(CertificateMetrics, AScrapeSaysWhenTheFileThatIsThereNowEnds) {
  const testing_support::TempDir directory;
  const TlsFiles files{.ca = "ca", .certificate = directory.path() + "/own.pem", .key = "key"};
  EXPECT_THAT(CertificateSamples(files), IsEmpty()) << "it may come later";
  const absl::Time begin = absl::FromUnixSeconds(1'800'000'000);
  const auto certificate = tls::MakeAuthorityCertificate(
      tls::MakeKey().value(), "own", tls::Validity{begin, begin + absl::Hours(24)});
  ASSERT_TRUE(certificate.ok()) << certificate.status();
  ASSERT_TRUE(os::WriteFileAtomic(files.certificate, *certificate, os::Durability::kVisible).ok());

  telemetry::Metrics metrics(CertificateMetricSpecs());
  metrics.AddSource([&] { return CertificateSamples(files); });
  EXPECT_THAT(metrics.Render(), HasSubstr("\nspoke_certificate_not_after_seconds 1800086400\n"));
  EXPECT_THAT(metrics.Render(), HasSubstr("\nspoke_certificate_lifetime_seconds 86400\n"));

  ASSERT_TRUE(os::WriteFileAtomic(files.certificate, "none", os::Durability::kVisible).ok());
  EXPECT_THAT(CertificateSamples(files), IsEmpty());
  EXPECT_THAT(CertificateSamples({.insecure = true}), IsEmpty());
}

}  // namespace
}  // namespace spoke::rpc
