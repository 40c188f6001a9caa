#include "ipam-server/authority/authority_files.h"

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/os/file.h"
#include "lib/tls/certificate.h"
#include "tests/support/temp_dir.h"

namespace spoke::ipam {
namespace {

namespace fs = std::filesystem;

using testing::ElementsAre;
using testing::HasSubstr;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);
const OwnCertificate kServer = ServerCertificate({"spoke-ipam-server", "10.96.0.10", "fd00::1"});

class AuthorityFiles : public testing::Test {
 protected:
  std::string Read(const std::string& name) const {
    return os::ReadFile(directory_ + "/" + name).value_or("");
  }
  void Put(const std::string& name, const std::string& text) const {
    ASSERT_TRUE(os::WriteFileAtomic(directory_ + "/" + name, text, os::Durability::kVisible).ok());
  }

  const testing_support::TempDir dir_;
  const std::string directory_ = dir_.File("ca");
};

TEST_F(AuthorityFiles, AreMadeOnceForTheirOwnerAlone) {
  const auto made = OpenAuthority(directory_, kNow);
  ASSERT_TRUE(made.ok()) << made.status();
  const auto again = OpenAuthority(directory_, kNow + absl::Hours(1));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->certificate, made->certificate);
  EXPECT_EQ(again->key, made->key);
  EXPECT_EQ(tls::ReadCertificate(made->certificate)->not_after, kNow + kAuthorityLife);
  ASSERT_TRUE(KeepCertificate(directory_, kServer, *made, kNow).ok());
  EXPECT_EQ(fs::status(directory_).permissions(), fs::perms::owner_all);
  for (const auto& file : fs::directory_iterator(directory_)) {
    EXPECT_EQ(file.status().permissions(), fs::perms::owner_read | fs::perms::owner_write) << file;
  }
}

TEST_F(AuthorityFiles, AnAuthorityIsNeverOverwritten) {
  ASSERT_TRUE(OpenAuthority(directory_, kNow).ok());
  const std::string certificate = Read("ca.pem");
  const std::string key = Read("ca.key");
  // A key that is gone.
  fs::remove(directory_ + "/ca.key");
  const auto refused = OpenAuthority(directory_, kNow);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("put both back from a backup"));
  EXPECT_EQ(Read("ca.pem"), certificate);
  EXPECT_FALSE(fs::exists(directory_ + "/ca.key"));
  // Another's key is refused, and so is what is no key.
  for (const std::string& wrong : {tls::MakeKey().value(), std::string("?")}) {
    Put("ca.key", wrong);
    EXPECT_TRUE(absl::IsFailedPrecondition(OpenAuthority(directory_, kNow).status()));
    EXPECT_EQ(Read("ca.key"), wrong);
    EXPECT_EQ(Read("ca.pem"), certificate);
  }
  // The process was killed between the two files.
  Put("ca.key", key);
  fs::remove(directory_ + "/ca.pem");
  const auto mended = OpenAuthority(directory_, kNow);
  ASSERT_TRUE(mended.ok()) << mended.status();
  EXPECT_EQ(mended->key, key);
}

TEST_F(AuthorityFiles, OwnCertificatesAreRenewedBeforeTheyEnd) {
  const tls::Authority authority = OpenAuthority(directory_, kNow).value();
  EXPECT_TRUE(KeepCertificate(directory_, kServer, authority, kNow).value());
  const std::string first = Read("server.pem");
  const std::string key = Read("server.key");
  const auto facts = tls::ReadCertificate(first);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_THAT(facts->dns_names, ElementsAre("spoke-ipam-server"));
  EXPECT_THAT(facts->addresses, ElementsAre(ip::Address::Parse("10.96.0.10").value(),
                                            ip::Address::Parse("fd00::1").value()));
  EXPECT_TRUE(facts->for_servers);
  EXPECT_FALSE(KeepCertificate(directory_, kServer, authority, kNow + absl::Hours(24)).value());
  const absl::Time late = kNow + kOwnCertificateLife * 2 / 3 + absl::Hours(1);
  EXPECT_TRUE(KeepCertificate(directory_, kServer, authority, late).value());
  EXPECT_NE(Read("server.pem"), first);
  EXPECT_EQ(Read("server.key"), key);
  EXPECT_TRUE(tls::CheckKeyFits(Read("server.pem"), key).ok());
}

TEST_F(AuthorityFiles, OwnCertificatesAreIssuedAnewWhenTheyDoNotFit) {
  const tls::Authority authority = OpenAuthority(directory_, kNow).value();
  ASSERT_TRUE(KeepCertificate(directory_, kServer, authority, kNow).value());
  // Other names make a new certificate.
  const OwnCertificate renamed = ServerCertificate({"ipam"});
  EXPECT_TRUE(KeepCertificate(directory_, renamed, authority, kNow).value());
  EXPECT_THAT(tls::ReadCertificate(Read("server.pem"))->dns_names, ElementsAre("ipam"));
  // A key of somebody else's, or none.
  for (const std::string& wrong : {tls::MakeKey().value(), std::string("?")}) {
    Put("server.key", wrong);
    EXPECT_TRUE(KeepCertificate(directory_, renamed, authority, kNow).value());
    EXPECT_TRUE(tls::CheckKeyFits(Read("server.pem"), Read("server.key")).ok());
  }
  // Another authority makes a new certificate.
  tls::Authority other{.certificate = "", .key = tls::MakeKey().value()};
  other.certificate =
      tls::MakeAuthorityCertificate(other.key, "other", {kNow, kNow + kAuthorityLife}).value();
  EXPECT_TRUE(KeepCertificate(directory_, renamed, other, kNow).value());
  EXPECT_FALSE(KeepCertificate(directory_, renamed, other, kNow).value());
  // Nothing is longer than the authority, and so nothing is tried again and again.
  const absl::Time late = kNow + kAuthorityLife - absl::Hours(24);
  EXPECT_TRUE(KeepCertificate(directory_, renamed, other, late).value());
  EXPECT_FALSE(KeepCertificate(directory_, renamed, other, late).value());
}

TEST_F(AuthorityFiles, AnOperatorIsNoNode) {
  const tls::Authority authority = OpenAuthority(directory_, kNow).value();
  ASSERT_TRUE(KeepCertificate(directory_, OperatorCertificate(), authority, kNow).value());
  const auto facts = tls::ReadCertificate(Read("operator.pem"));
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->common_name, "spoke:operator");
  EXPECT_TRUE(facts->dns_names.empty());
  EXPECT_TRUE(facts->for_clients);
}

TEST_F(AuthorityFiles, SayWhichDirectoryCannotBeMade) {
  const auto refused = OpenAuthority(dir_.File("none/ca"), kNow);
  EXPECT_TRUE(absl::IsNotFound(refused.status()));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr(dir_.File("none/ca")));
}

TEST(MetricsToken, IsMadeOnceAndItsFirstLineCounts) {
  const testing_support::TempDir dir;
  const std::string made = KeepMetricsToken(dir.path(), "").value();
  EXPECT_EQ(made.size(), 64U);
  EXPECT_EQ(KeepMetricsToken(dir.path(), "").value(), made);
  const testing_support::TempDir other;
  EXPECT_NE(KeepMetricsToken(other.path(), "").value(), made);
  ASSERT_TRUE(
      os::WriteFileAtomic(dir.File("metrics.token"), "new\nold\n", os::Durability::kVisible).ok());
  EXPECT_EQ(KeepMetricsToken(dir.path(), "").value(), "new");
}

TEST(MetricsToken, IsThePublishedOneAsLongAsThereIsOne) {
  const testing_support::TempDir dir;
  EXPECT_EQ(KeepMetricsToken(dir.path(), "of another server").value(), "of another server");
  EXPECT_EQ(KeepMetricsToken(dir.path(), "").value(), "of another server");
  EXPECT_EQ(KeepMetricsToken(dir.path(), "a newer one").value(), "a newer one");
  EXPECT_EQ(os::ReadFile(dir.File("metrics.token")).value(), "a newer one\n");
}

}  // namespace
}  // namespace spoke::ipam
