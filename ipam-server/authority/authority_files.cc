#include "ipam-server/authority/authority_files.h"

#include <random>

#include "absl/strings/escaping.h"
#include "fmt/core.h"
#include "ipam-server/operators/role.h"
#include "lib/base/status.h"
#include "lib/os/file.h"
#include "lib/tls/certificate.h"
#include "lib/tls/message_code.h"

namespace spoke::ipam {
namespace {

constexpr size_t kMaxPemBytes = 1U << 20U;
constexpr size_t kTokenBytes = 32;

absl::Status Write(const std::string& path, std::string_view content) {
  return os::WriteFileAtomic(path, content, os::Durability::kSurvivesPower, 0600);
}

// Returns the file's text; empty: there is no such file.
absl::StatusOr<std::string> ReadIfThere(const std::string& path) {
  auto text = os::ReadFile(path, kMaxPemBytes);
  if (absl::IsNotFound(text.status())) return std::string();
  return text;
}

// Returns a random name, so that authorities of two clusters are told apart.
std::string NewAuthorityName() {
  std::random_device random;
  return fmt::format("spoke authority {:08x}", uint32_t{random()});
}

absl::StatusOr<std::string> CertificateFor(const std::string& key, absl::Time now) {
  return tls::MakeAuthorityCertificate(key, NewAuthorityName(),
                                       {now - kClockSkew, now + kAuthorityLife});
}

absl::Status CheckAuthority(const tls::Authority& authority, const std::string& directory) {
  absl::Status status = tls::CheckKeyFits(authority.certificate, authority.key);
  if (status.ok()) {
    const auto facts = tls::ReadCertificate(authority.certificate);
    if (!facts.ok()) {
      status = facts.status();
    } else if (!facts->is_authority) {
      status = absl::FailedPreconditionError("the certificate may not sign others");
    }
  }
  if (status.ok()) return status;
  return absl::FailedPreconditionError(fmt::format(
      "{0}/ca.pem and {0}/ca.key are no authority: {1}; put both back from a backup, or move both "
      "away for a new one, with which every agent enrolls anew",
      directory, base::MessageOf(status)));
}

bool IsGood(const std::string& certificate, const std::string& key, const OwnCertificate& own,
            const tls::Authority& authority, absl::Time now) {
  const auto facts = tls::ReadCertificate(certificate);
  if (!facts.ok() || !tls::CheckKeyFits(certificate, key).ok() ||
      !tls::CheckSignedBy(certificate, authority.certificate).ok()) {
    return false;
  }
  // A certificate that the authority's own end has made shorter cannot be made longer.
  const auto of_authority = tls::ReadCertificate(authority.certificate);
  const bool lasts = facts->not_after > now + own.life / 3 ||
                     (of_authority.ok() && facts->not_after >= of_authority->not_after);
  const std::string& organization = own.subject.organization;
  const auto organizations =
      organization.empty() ? std::vector<std::string>() : std::vector<std::string>{organization};
  return lasts && facts->common_name == own.subject.common_name &&
         facts->organizations == organizations && facts->dns_names == own.subject.dns_names &&
         facts->addresses == own.subject.addresses;
}

}  // namespace

absl::StatusOr<tls::Authority> MakeAuthority(absl::Time now) {
  tls::Authority authority;
  ASSIGN_OR_RETURN(authority.key, tls::MakeKey());
  ASSIGN_OR_RETURN(authority.certificate, CertificateFor(authority.key, now));
  return authority;
}

absl::StatusOr<tls::Authority> OpenAuthority(const std::string& directory, absl::Time now) {
  RETURN_IF_ERROR(os::MakeDirectory(directory));
  const std::string key_file = directory + "/ca.key";
  const std::string certificate_file = directory + "/ca.pem";
  tls::Authority authority;
  ASSIGN_OR_RETURN(authority.key, ReadIfThere(key_file));
  ASSIGN_OR_RETURN(authority.certificate, ReadIfThere(certificate_file));
  // The key first: a certificate without one would be of no use, and looks like a lost key.
  if (authority.key.empty() && authority.certificate.empty()) {
    ASSIGN_OR_RETURN(authority.key, tls::MakeKey());
    RETURN_IF_ERROR(Write(key_file, authority.key));
  }
  if (authority.certificate.empty()) {
    const auto made = CertificateFor(authority.key, now);
    if (!made.ok()) return base::Annotate(made.status(), key_file);
    authority.certificate = *made;
    RETURN_IF_ERROR(Write(certificate_file, authority.certificate));
  }
  RETURN_IF_ERROR(CheckAuthority(authority, directory));
  return authority;
}

OwnCertificate ServerCertificate(const std::vector<std::string>& names) {
  OwnCertificate own{.name = "server",
                     .subject = {.common_name = "spoke-ipam-server",
                                 .dns_names = {},
                                 .addresses = {},
                                 .purpose = tls::Purpose::kServer}};
  for (const std::string& name : names) {
    if (const auto address = ip::Address::Parse(name); address.ok()) {
      own.subject.addresses.push_back(*address);
    } else {
      own.subject.dns_names.push_back(name);
    }
  }
  return own;
}

OwnCertificate OperatorCertificate() {
  return {.name = "operator",
          .subject = {.common_name = kOperatorName,
                      .dns_names = {},
                      .addresses = {},
                      .organization = std::string(OrganizationOf(Role::kAdmin)),
                      .purpose = tls::Purpose::kClient},
          .life = kPublishedCertificateLife};
}

absl::StatusOr<bool> KeepCertificate(const std::string& directory, const OwnCertificate& own,
                                     const tls::Authority& authority, absl::Time now) {
  const std::string key_file = fmt::format("{}/{}.key", directory, own.name);
  const std::string certificate_file = fmt::format("{}/{}.pem", directory, own.name);
  ASSIGN_OR_RETURN(std::string key, ReadIfThere(key_file));
  ASSIGN_OR_RETURN(const std::string certificate, ReadIfThere(certificate_file));
  if (IsGood(certificate, key, own, authority, now)) return false;
  auto public_key = tls::PublicKeyOf(key);
  if (!public_key.ok()) {
    ASSIGN_OR_RETURN(key, tls::MakeKey());
    RETURN_IF_ERROR(Write(key_file, key));
    public_key = tls::PublicKeyOf(key);
    RETURN_IF_ERROR(public_key.status());
  }
  ASSIGN_OR_RETURN(const std::string issued,
                   tls::IssueCertificate(authority, *public_key, own.subject,
                                         {now - kClockSkew, now + own.life}));
  RETURN_IF_ERROR(Write(certificate_file, issued));
  return true;
}

absl::StatusOr<std::string> KeepMetricsToken(const std::string& directory,
                                             const std::string& published) {
  const std::string file = directory + "/metrics.token";
  ASSIGN_OR_RETURN(std::string text, ReadIfThere(file));
  text = text.substr(0, text.find_first_of("\r\n"));
  if (!text.empty() && (published.empty() || text == published)) return text;
  text = published;
  if (text.empty()) {
    ASSIGN_OR_RETURN(const std::string random, tls::RandomBytes(kTokenBytes));
    text = absl::BytesToHexString(random);
  }
  RETURN_IF_ERROR(Write(file, text + "\n"));
  return text;
}

}  // namespace spoke::ipam
