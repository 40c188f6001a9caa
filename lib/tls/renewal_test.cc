#include "lib/tls/renewal.h"

#include "gtest/gtest.h"
#include "lib/tls/authority.h"
#include "lib/tls/certificate.h"

namespace spoke::tls {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

std::string SelfSigned(const std::string& key) {
  return MakeAuthorityCertificate(key, "test", {kNow, kNow + absl::Hours(1)}).value();
}

TEST(Renewal, OnlyTheCertificatesKeyProvesIt) {
  const std::string key = MakeKey().value();
  const std::string certificate = SelfSigned(key);
  const std::string proof = ProveRenewal(key, "node-1", "request").value();
  EXPECT_TRUE(CheckRenewalProof(certificate, "node-1", "request", proof).ok());
  EXPECT_TRUE(absl::IsUnauthenticated(CheckRenewalProof(certificate, "node-2", "request", proof)));
  EXPECT_TRUE(absl::IsUnauthenticated(CheckRenewalProof(certificate, "node-1", "other", proof)));
  EXPECT_TRUE(absl::IsUnauthenticated(CheckRenewalProof(certificate, "node-1", "request", "")));
  EXPECT_TRUE(absl::IsUnauthenticated(
      CheckRenewalProof(certificate, "node-1", "request", std::string(1 << 20, 'x'))));
  EXPECT_TRUE(absl::IsUnauthenticated(
      CheckRenewalProof(SelfSigned(MakeKey().value()), "node-1", "request", proof)));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckRenewalProof("?", "node-1", "request", proof)));
  EXPECT_TRUE(absl::IsInvalidArgument(ProveRenewal("?", "node-1", "request").status()));
}

}  // namespace
}  // namespace spoke::tls
