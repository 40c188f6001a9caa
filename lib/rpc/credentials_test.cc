#include "lib/rpc/credentials.h"

#include <grpcpp/security/auth_context.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/tls/authority.h"
#include "lib/tls/certificate.h"
#include "tests/support/temp_dir.h"

namespace spoke::rpc {
namespace {

TEST(TlsFiles, PlainTextIsNeverChosenByOmission) {
  EXPECT_EQ(TlsFiles{}.Validate().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE((TlsFiles{.ca = "a", .certificate = "b"}).Validate().ok());
  EXPECT_FALSE(
      (TlsFiles{.ca = "a", .certificate = "b", .key = "c", .insecure = true}).Validate().ok());
  EXPECT_TRUE((TlsFiles{.ca = "a", .certificate = "b", .key = "c"}).Validate().ok());
  EXPECT_TRUE(TlsFiles{.insecure = true}.Validate().ok());
}

TEST(TlsFiles, AMissingFileIsNamed) {
  const testing_support::TempDir dir;
  const TlsFiles files{.ca = dir.File("ca.pem"), .certificate = "x", .key = "y"};
  const auto credentials = ServerCredentials(files);
  EXPECT_EQ(credentials.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(std::string(credentials.status().message()).find(files.ca), std::string::npos);
}

// What gRPC says of a peer whose certificate it has verified.
class FakeContext final : public grpc::AuthContext {
 public:
  explicit FakeContext(std::map<std::string, std::string> properties)
      : properties_(std::move(properties)) {}

  bool IsPeerAuthenticated() const override { return true; }
  std::vector<grpc::string_ref> GetPeerIdentity() const override { return {}; }
  std::string GetPeerIdentityPropertyName() const override { return ""; }
  std::vector<grpc::string_ref> FindPropertyValues(const std::string& name) const override {
    const auto found = properties_.find(name);
    if (found == properties_.end()) return {};
    return {grpc::string_ref(found->second)};
  }
  grpc::AuthPropertyIterator begin() const override { return None(); }
  grpc::AuthPropertyIterator end() const override { return None(); }
  void AddProperty(const std::string&, const grpc::string_ref&) override {}
  bool SetPeerIdentityPropertyName(const std::string&) override { return false; }

 private:
  struct None : grpc::AuthPropertyIterator {};

  const std::map<std::string, std::string> properties_;
};

TEST(PeerCertificate, SaysWhatTheCertificateSays) {
  const std::string key = tls::MakeKey().value();
  const absl::Time end = absl::FromUnixSeconds(1'900'000'000);
  const tls::Validity validity{absl::FromUnixSeconds(1'800'000'000), end};
  const std::string root = tls::MakeAuthorityCertificate(key, "root", validity).value();
  const std::string pem =
      tls::IssueCertificate({.certificate = root, .key = key}, tls::PublicKeyOf(key).value(),
                            {.common_name = "anna", .organization = "spoke:viewer"}, validity)
          .value();
  const PeerCertificate peer =
      PeerCertificateOf(FakeContext({{"x509_common_name", "anna"}, {"x509_pem_cert", pem}}));
  EXPECT_THAT(peer.names, testing::ElementsAre("anna"));
  EXPECT_THAT(peer.organizations, testing::ElementsAre("spoke:viewer"));
  EXPECT_EQ(peer.not_after, end);
  EXPECT_EQ(peer.serial, tls::ReadCertificate(pem)->serial);
}

// Without its number and organizations it might be revoked, or an operator's.
TEST(PeerCertificate, NamesNobodyWhenItCannotBeRead) {
  const PeerCertificate peer = PeerCertificateOf(FakeContext(
      {{"x509_common_name", "anna"}, {"peer_uri", "spoke://x"}, {"x509_pem_cert", "no PEM"}}));
  EXPECT_THAT(peer.names, testing::IsEmpty());
  EXPECT_THAT(peer.uris, testing::IsEmpty());
}

TEST(FromGrpc, KeepsTheCode) {
  EXPECT_EQ(FromGrpc(14, "connection refused"), absl::UnavailableError("connection refused"));
  EXPECT_TRUE(FromGrpc(0, "").ok());
}

}  // namespace
}  // namespace spoke::rpc
