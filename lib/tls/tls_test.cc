#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/tls/authority.h"
#include "lib/tls/certificate.h"
#include "lib/tls/certificate_holder.h"

namespace spoke::tls {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);
const Validity kTenYears{kNow, kNow + absl::Hours(24 * 3650)};
const Validity kMonth{kNow, kNow + absl::Hours(24 * 30)};

Authority MakeTestAuthority(std::string_view name = "test authority") {
  Authority authority;
  authority.key = MakeKey().value();
  authority.certificate = MakeAuthorityCertificate(authority.key, name, kTenYears).value();
  return authority;
}

std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

// A key of another kind, as `openssl genpkey -algorithm ed25519` makes one.
constexpr std::string_view kOtherKey = R"(-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC
-----END PRIVATE KEY-----
)";

TEST(SigningRequest, GivesTheKeyItWasMadeFor) {
  const std::string key = MakeKey().value();
  const auto request = MakeSigningRequest(key, "node-1");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_LT(request->size(), kMaxSigningRequestBytes / 8);
  const auto read = ReadSigningRequest(*request);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, PublicKeyOf(key).value());
  EXPECT_NE(*read, PublicKeyOf(MakeKey().value()).value());
}

TEST(SigningRequest, IsRefusedWhenItIsNotOneAndNothingElse) {
  const std::string good = MakeSigningRequest(MakeKey().value(), "node-1").value();
  EXPECT_TRUE(ReadSigningRequest(good + "\n\n").ok());
  for (const std::string& bad :
       {std::string(), std::string("-----BEGIN CERTIFICATE REQUEST-----\n"), "x" + good, good + "x",
        good + good, good.substr(0, good.size() / 2), std::string(kMaxSigningRequestBytes, 'a'),
        MakeTestAuthority().certificate}) {
    const auto read = ReadSigningRequest(bad);
    EXPECT_TRUE(absl::IsInvalidArgument(read.status())) << read.status();
  }
  EXPECT_THAT(MessageOf(ReadSigningRequest(std::string(9000, 'a')).status()),
              HasSubstr("of 9000 bytes; at most 8192"));
}

TEST(SigningRequest, IsRefusedWhenItsSignatureIsNotItsOwn) {
  std::string bad = MakeSigningRequest(MakeKey().value(), "node-1").value();
  // The last sign before the padding and the end belongs to the signature.
  const size_t end = bad.find("-----END");
  char& sign = bad[bad.find_last_not_of("=\n", end - 1) - 4];
  sign = sign == 'A' ? 'B' : 'A';
  const auto read = ReadSigningRequest(bad);
  EXPECT_TRUE(absl::IsInvalidArgument(read.status())) << read.status();
}

TEST(SigningRequest, NeedsANameAndAKeyOnP256) {
  EXPECT_TRUE(absl::IsInvalidArgument(MakeSigningRequest("no key", "a").status()));
  EXPECT_THAT(MessageOf(MakeSigningRequest(kOtherKey, "a").status()), HasSubstr("not on P-256"));
  const std::string key = MakeKey().value();
  EXPECT_TRUE(absl::IsInvalidArgument(MakeSigningRequest(key, "").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(MakeSigningRequest(key, std::string(65, 'a')).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(PublicKeyOf(kOtherKey).status()));
}

TEST(CertificateHolder, IsWhatTheWholeCertificateSays) {
  const Authority authority = MakeTestAuthority();
  const std::string key = MakeKey().value();
  const auto issue = [&](const Subject& subject) {
    return IssueCertificate(authority, PublicKeyOf(key).value(), subject, kMonth).value();
  };
  for (const std::string& pem :
       {authority.certificate, issue({.common_name = "node-1", .dns_names = {"node-1"}}),
        issue({.common_name = "anna", .organization = "spoke:operator"})}) {
    const auto whole = ReadCertificate(pem);
    ASSERT_TRUE(whole.ok()) << whole.status();
    const auto holder = ReadCertificateHolder(pem);
    ASSERT_TRUE(holder.ok()) << holder.status();
    EXPECT_EQ(*holder, (CertificateHolder{whole->serial, whole->organizations, whole->not_after}));
    EXPECT_THAT(holder->serial, testing::Not(IsEmpty()));
  }
}

TEST(CertificateHolder, IsRefusedWhenItCannotBeRead) {
  for (const std::string& bad :
       {std::string(), MakeKey().value(),
        std::string("-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"),
        std::string("-----BEGIN CERTIFICATE-----\nMIAwgA==\n-----END CERTIFICATE-----\n")}) {
    const auto holder = ReadCertificateHolder(bad);
    EXPECT_TRUE(absl::IsInvalidArgument(holder.status())) << holder.status();
  }
}

TEST(Authority, SignsForOneNameAndNoMore) {
  const Authority authority = MakeTestAuthority();
  const std::string key = MakeKey().value();
  const auto chain = IssueCertificate(authority, PublicKeyOf(key).value(),
                                      {.common_name = "node-1", .dns_names = {"node-1"}}, kMonth);
  ASSERT_TRUE(chain.ok()) << chain.status();
  const auto facts = ReadCertificate(*chain);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->common_name, "node-1");
  EXPECT_THAT(facts->dns_names, ElementsAre("node-1"));
  EXPECT_THAT(facts->addresses, IsEmpty());
  EXPECT_EQ(facts->not_before, kMonth.not_before);
  EXPECT_EQ(facts->not_after, kMonth.not_after);
  EXPECT_FALSE(facts->is_authority);
  EXPECT_TRUE(facts->for_clients);
  EXPECT_FALSE(facts->for_servers);
  EXPECT_TRUE(CheckKeyFits(*chain, key).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(CheckKeyFits(*chain, MakeKey().value())));
  EXPECT_TRUE(CheckSignedBy(*chain, authority.certificate).ok());
}

TEST(Authority, SignsForServersByNameAndAddress) {
  const Authority authority = MakeTestAuthority();
  const std::vector<ip::Address> addresses = {ip::Address::V4(0x0A60000A),
                                              ip::Address::V6(0xFD00ULL << 48U, 1)};
  const auto chain = IssueCertificate(authority, PublicKeyOf(MakeKey().value()).value(),
                                      {.dns_names = {"spoke-ipam-server", "a.b.svc"},
                                       .addresses = addresses,
                                       .purpose = Purpose::kServer},
                                      kMonth);
  ASSERT_TRUE(chain.ok()) << chain.status();
  const auto facts = ReadCertificate(*chain);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->common_name, "");
  EXPECT_THAT(facts->dns_names, ElementsAre("spoke-ipam-server", "a.b.svc"));
  EXPECT_EQ(facts->addresses, addresses);
  EXPECT_TRUE(facts->for_servers);
  EXPECT_FALSE(facts->for_clients);
}

TEST(Authority, SignsUrisAsTheyAre) {
  const Authority authority = MakeTestAuthority();
  const PublicKey key = PublicKeyOf(MakeKey().value()).value();
  const std::vector<std::string> uris = {"azure:///subscriptions/S/mc_(a)/7",
                                         "spoke-node:n?a=b&c="};
  const auto chain = IssueCertificate(authority, key, {.dns_names = {"n"}, .uris = uris}, kMonth);
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_EQ(ReadCertificate(*chain)->uris, uris);
  for (const std::string& uri :
       {std::string("no scheme"), std::string(":"), std::string("a:b c"), std::string("a:\n"),
        std::string("a:\0b", 4), "a:" + std::string(kMaxUriBytes, 'b')}) {
    EXPECT_TRUE(absl::IsInvalidArgument(
        IssueCertificate(authority, key, {.dns_names = {"n"}, .uris = {uri}}, kMonth).status()))
        << uri.substr(0, 10);
  }
}

TEST(Authority, IsToldFromOthersOfTheSameName) {
  const Authority one = MakeTestAuthority();
  const Authority other = MakeTestAuthority();
  const PublicKey key = PublicKeyOf(MakeKey().value()).value();
  const std::string chain = IssueCertificate(one, key, {.dns_names = {"node-1"}}, kMonth).value();
  EXPECT_TRUE(absl::IsFailedPrecondition(CheckSignedBy(chain, other.certificate)));
  EXPECT_TRUE(CheckSignedBy(chain, other.certificate + one.certificate).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(CheckSignedBy(chain, "")));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckSignedBy("", one.certificate)));
  const auto facts = ReadCertificate(one.certificate);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_TRUE(facts->is_authority);
}

TEST(Authority, SignsNothingBeyondItsOwnEnd) {
  const Authority authority = MakeTestAuthority();
  const PublicKey key = PublicKeyOf(MakeKey().value()).value();
  const absl::Time late = kTenYears.not_after - absl::Hours(1);
  const std::string chain =
      IssueCertificate(authority, key, {.dns_names = {"node-1"}}, {late, late + absl::Hours(24)})
          .value();
  EXPECT_EQ(ReadCertificate(chain)->not_after, kTenYears.not_after);
  const absl::Time over = kTenYears.not_after;
  const auto refused =
      IssueCertificate(authority, key, {.dns_names = {"node-1"}}, {over, over + absl::Hours(1)});
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status()));
  EXPECT_THAT(MessageOf(refused.status()), HasSubstr("ended on 2037"));
}

TEST(Authority, RefusesWhatCannotBe) {
  const Authority good = MakeTestAuthority();
  const PublicKey key = PublicKeyOf(MakeKey().value()).value();
  const Subject subject{.dns_names = {"node-1"}};
  EXPECT_TRUE(absl::IsInvalidArgument(IssueCertificate(good, key, {}, kMonth).status()));
  for (const char* name : {"", "*.a", "A", "a,DNS:b"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(
        IssueCertificate(good, key, {.dns_names = {name}}, kMonth).status()))
        << name;
  }
  EXPECT_TRUE(
      absl::IsInvalidArgument(IssueCertificate(good, PublicKey{"?"}, subject, kMonth).status()));
  // These are no authority, and one whose key is another's.
  const std::string leaf_key = MakeKey().value();
  const std::string leaf =
      IssueCertificate(good, PublicKeyOf(leaf_key).value(), subject, kMonth).value();
  for (const Authority& bad : {Authority{}, Authority{good.certificate, leaf_key},
                               Authority{leaf, leaf_key}, Authority{good.certificate, ""}}) {
    const auto refused = IssueCertificate(bad, key, subject, kMonth);
    EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
  }
  EXPECT_TRUE(absl::IsInvalidArgument(MakeAuthorityCertificate("", "a", kMonth).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(MakeAuthorityCertificate(good.key, "", kMonth).status()));
}

TEST(Authority, LeavesACommonNameOutThatIsTooLong) {
  const Authority authority = MakeTestAuthority();
  const std::string name = std::string(60, 'a') + ".example.org";
  const auto chain = IssueCertificate(authority, PublicKeyOf(MakeKey().value()).value(),
                                      {.common_name = name, .dns_names = {name}}, kMonth);
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_EQ(ReadCertificate(*chain)->common_name, "");
  EXPECT_THAT(ReadCertificate(*chain)->dns_names, ElementsAre(name));
}

TEST(Keys, WithAPasswordAreRefusedAndNotAskedAbout) {
  const std::string locked =
      "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n-----END ENCRYPTED PRIVATE KEY-----\n";
  EXPECT_TRUE(absl::IsInvalidArgument(PublicKeyOf(locked).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadCertificate("").status()));
}

}  // namespace
}  // namespace spoke::tls
