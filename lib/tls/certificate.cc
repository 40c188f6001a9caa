#include "lib/tls/certificate.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/tls/openssl_objects.h"

namespace spoke::tls {
namespace {

void TakeCommonName(const X509* certificate, CertificateFacts& out) {
  const X509_NAME* name = X509_get_subject_name(certificate);
  const int at = X509_NAME_get_index_by_NID(name, NID_commonName, -1);
  if (at < 0) return;
  out.common_name = TextOf(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at)));
}

void TakeNames(const X509* certificate, CertificateFacts& out) {
  const Names names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  if (names == nullptr) return;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_DNS) out.dns_names.emplace_back(TextOf(name->d.dNSName));
    if (name->type == GEN_URI) {
      out.uris.emplace_back(TextOf(name->d.uniformResourceIdentifier));
    }
    if (name->type != GEN_IPADD) continue;
    const auto address = ip::Address::FromBytes(TextOf(name->d.iPAddress));
    if (address.ok()) out.addresses.push_back(*address);
  }
}

constexpr size_t kMaxCommonNameBytes = 64;  // The number ub-common-name of RFC 5280.

absl::StatusOr<PublicKey> DerOf(EVP_PKEY* key) {
  unsigned char* data = nullptr;
  const int size = i2d_PUBKEY(key, &data);
  if (size <= 0) return OpensslError(absl::StatusCode::kInternal, "write a public key");
  PublicKey out{std::string(reinterpret_cast<const char*>(data), static_cast<size_t>(size))};
  OPENSSL_free(data);
  return out;
}

absl::StatusOr<Key> ParseP256(std::string_view pem) {
  ASSIGN_OR_RETURN(Key key, ParseKey(pem));
  if (!IsP256(key.get())) return absl::InvalidArgumentError("the private key is not on P-256");
  return key;
}

// PEM allows text before and after; here it would be carried along unread.
absl::Status CheckOneBlock(std::string_view pem) {
  constexpr std::string_view kBegin = "-----BEGIN CERTIFICATE REQUEST-----\n";
  constexpr std::string_view kEnd = "-----END CERTIFICATE REQUEST-----";
  while (!pem.empty() && (pem.back() == '\n' || pem.back() == '\r')) pem.remove_suffix(1);
  if (pem.size() < kBegin.size() + kEnd.size() || !pem.starts_with(kBegin) ||
      !pem.ends_with(kEnd) || pem.find(kEnd) != pem.size() - kEnd.size()) {
    return absl::InvalidArgumentError("not one certificate request in PEM and nothing else");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CertificateFacts> ReadCertificate(std::string_view pem) {
  ASSIGN_OR_RETURN(const Certificate certificate, ParseCertificate(pem));
  CertificateFacts out;
  ASSIGN_OR_RETURN(out.not_before, TimeOf(X509_get0_notBefore(certificate.get())));
  ASSIGN_OR_RETURN(out.not_after, TimeOf(X509_get0_notAfter(certificate.get())));
  ASSIGN_OR_RETURN(out.serial, SerialOf(X509_get0_serialNumber(certificate.get())));
  TakeCommonName(certificate.get(), out);
  out.organizations = OrganizationsOf(X509_get_subject_name(certificate.get()));
  TakeNames(certificate.get(), out);
  out.is_authority = X509_check_ca(certificate.get()) == 1;
  const uint32_t usage = X509_get_extended_key_usage(certificate.get());
  out.for_clients = usage != UINT32_MAX && (usage & XKU_SSL_CLIENT) != 0;
  out.for_servers = usage != UINT32_MAX && (usage & XKU_SSL_SERVER) != 0;
  ERR_clear_error();
  return out;
}

absl::Status CheckKeyFits(std::string_view certificate, std::string_view key) {
  ASSIGN_OR_RETURN(const Certificate parsed, ParseCertificate(certificate));
  ASSIGN_OR_RETURN(const Key parsed_key, ParseKey(key));
  const bool fits = X509_check_private_key(parsed.get(), parsed_key.get()) == 1;
  ERR_clear_error();
  if (!fits) return absl::FailedPreconditionError("the certificate is for another key");
  return absl::OkStatus();
}

absl::Status CheckSignedBy(std::string_view certificate, std::string_view authorities) {
  ASSIGN_OR_RETURN(const Certificate parsed, ParseCertificate(certificate));
  RETURN_IF_ERROR(base::Annotate(ParseCertificate(authorities).status(), "the authority"));
  const Bio bio(BIO_new_mem_buf(authorities.data(), static_cast<int>(authorities.size())));
  bool found = false;
  while (bio != nullptr && !found) {
    const Certificate authority(PEM_read_bio_X509(bio.get(), nullptr, &NoPassword, nullptr));
    if (authority == nullptr) break;
    found = X509_check_issued(authority.get(), parsed.get()) == X509_V_OK &&
            X509_verify(parsed.get(), X509_get0_pubkey(authority.get())) == 1;
  }
  ERR_clear_error();
  if (!found) {
    return absl::FailedPreconditionError("the certificate is signed by another authority");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> MakeKey() {
  const Key key(EVP_EC_gen("P-256"));
  if (key == nullptr) return OpensslError(absl::StatusCode::kInternal, "make a key");
  return WrittenPem("write a key", [&](BIO* bio) {
    return PEM_write_bio_PrivateKey(bio, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
}

absl::StatusOr<PublicKey> PublicKeyOf(std::string_view key) {
  ASSIGN_OR_RETURN(const Key parsed, ParseP256(key));
  return DerOf(parsed.get());
}

absl::StatusOr<std::string> MakeSigningRequest(std::string_view key, std::string_view name) {
  if (name.empty() || name.size() > kMaxCommonNameBytes) {
    return absl::InvalidArgumentError(fmt::format("a request's name has 1 to {} bytes, not {}",
                                                  kMaxCommonNameBytes, name.size()));
  }
  ASSIGN_OR_RETURN(const Key parsed, ParseP256(key));
  const Request request(X509_REQ_new());
  if (request == nullptr || X509_REQ_set_version(request.get(), X509_REQ_VERSION_1) != 1 ||
      X509_NAME_add_entry_by_NID(X509_REQ_get_subject_name(request.get()), NID_commonName,
                                 MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(name.data()),
                                 static_cast<int>(name.size()), -1, 0) != 1 ||
      X509_REQ_set_pubkey(request.get(), parsed.get()) != 1 ||
      X509_REQ_sign(request.get(), parsed.get(), EVP_sha256()) <= 0) {
    return OpensslError(absl::StatusCode::kInternal, "make a certificate request");
  }
  return WrittenPem("write a certificate request",
                    [&](BIO* bio) { return PEM_write_bio_X509_REQ(bio, request.get()); });
}

absl::StatusOr<PublicKey> ReadSigningRequest(std::string_view pem) {
  if (pem.size() > kMaxSigningRequestBytes) {
    return absl::InvalidArgumentError(
        fmt::format("a certificate request of {} bytes; at most {} are taken", pem.size(),
                    kMaxSigningRequestBytes));
  }
  RETURN_IF_ERROR(CheckOneBlock(pem));
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  const Request request(
      bio == nullptr ? nullptr : PEM_read_bio_X509_REQ(bio.get(), nullptr, &NoPassword, nullptr));
  if (request == nullptr) {
    return OpensslError(absl::StatusCode::kInvalidArgument, "not a certificate request");
  }
  EVP_PKEY* key = X509_REQ_get0_pubkey(request.get());
  if (!IsP256(key)) {
    ERR_clear_error();
    return absl::InvalidArgumentError("the key of a certificate request must be on P-256");
  }
  if (X509_REQ_verify(request.get(), key) != 1) {
    return OpensslError(absl::StatusCode::kInvalidArgument,
                        "the certificate request is not signed with its own key");
  }
  return DerOf(key);
}

}  // namespace spoke::tls
