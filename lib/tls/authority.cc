#include "lib/tls/authority.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "fmt/core.h"
#include "lib/base/dns_name.h"
#include "lib/base/status.h"
#include "lib/base/time_text.h"
#include "lib/tls/openssl_objects.h"

namespace spoke::tls {
namespace {

// The numbers ub-common-name and ub-organization-name of RFC 5280.
constexpr size_t kMaxCommonNameBytes = 64;
// Makes a serial number as RFC 5280, section 4.1.2.2 wants it: positive, and at most 20 bytes;
// nobody shall guess it.
constexpr int kSerialBits = 127;

absl::Status Failed(std::string_view what) {
  return OpensslError(absl::StatusCode::kInternal, what);
}

absl::Status SetSerial(X509* certificate) {
  const BigNumber number(BN_new());
  if (number == nullptr ||
      BN_rand(number.get(), kSerialBits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) != 1 ||
      BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) == nullptr) {
    return Failed("draw a serial number");
  }
  return absl::OkStatus();
}

absl::Status SetValidity(X509* certificate, const Validity& validity) {
  if (ASN1_TIME_set(X509_getm_notBefore(certificate), absl::ToTimeT(validity.not_before)) ==
          nullptr ||
      ASN1_TIME_set(X509_getm_notAfter(certificate), absl::ToTimeT(validity.not_after)) ==
          nullptr) {
    return Failed("set a certificate's dates");
  }
  return absl::OkStatus();
}

absl::Status SetName(X509* certificate, int nid, std::string_view name) {
  if (name.empty()) return absl::OkStatus();
  if (X509_NAME_add_entry_by_NID(X509_get_subject_name(certificate), nid, MBSTRING_UTF8,
                                 reinterpret_cast<const unsigned char*>(name.data()),
                                 static_cast<int>(name.size()), -1, 0) != 1) {
    return Failed("set a certificate's name");
  }
  return absl::OkStatus();
}

// Adds an extension with `value` in the notation of OpenSSL's configuration; never with what others
// wrote.
absl::Status AddExtension(X509* certificate, X509* issuer, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_nconf_nid(nullptr, &context, nid, value));
  if (extension == nullptr || X509_add_ext(certificate, extension.get(), -1) != 1) {
    return Failed(fmt::format("add {} to a certificate", OBJ_nid2sn(nid)));
  }
  return absl::OkStatus();
}

absl::Status AddName(GENERAL_NAMES* names, int type, std::string_view bytes) {
  Name name(GENERAL_NAME_new());
  ASN1_STRING* text = type == GEN_IPADD ? ASN1_OCTET_STRING_new() : ASN1_IA5STRING_new();
  if (name == nullptr || text == nullptr ||
      ASN1_STRING_set(text, bytes.data(), static_cast<int>(bytes.size())) != 1) {
    ASN1_STRING_free(text);
    return Failed("add a name to a certificate");
  }
  GENERAL_NAME_set0_value(name.get(), type, text);
  if (sk_GENERAL_NAME_push(names, name.get()) <= 0) return Failed("add a name to a certificate");
  static_cast<void>(name.release());  // The list owns it now.
  return absl::OkStatus();
}

absl::Status AddAlternativeNames(X509* certificate, const Subject& subject) {
  if (subject.dns_names.empty() && subject.addresses.empty() && subject.uris.empty()) {
    return absl::OkStatus();
  }
  const Names names(GENERAL_NAMES_new());
  if (names == nullptr) return Failed("add names to a certificate");
  for (const std::string& name : subject.dns_names) {
    RETURN_IF_ERROR(AddName(names.get(), GEN_DNS, name));
  }
  for (const ip::Address& address : subject.addresses) {
    RETURN_IF_ERROR(AddName(names.get(), GEN_IPADD, address.ToBytes()));
  }
  for (const std::string& uri : subject.uris) {
    RETURN_IF_ERROR(AddName(names.get(), GEN_URI, uri));
  }
  if (X509_add1_ext_i2d(certificate, NID_subject_alt_name, names.get(), 0, X509V3_ADD_DEFAULT) !=
      1) {
    return Failed("add names to a certificate");
  }
  return absl::OkStatus();
}

absl::StatusOr<Certificate> NewCertificate(const Validity& validity) {
  Certificate certificate(X509_new());
  if (certificate == nullptr || X509_set_version(certificate.get(), X509_VERSION_3) != 1) {
    return Failed("make a certificate");
  }
  RETURN_IF_ERROR(SetSerial(certificate.get()));
  RETURN_IF_ERROR(SetValidity(certificate.get(), validity));
  return certificate;
}

absl::StatusOr<std::string> SignedPem(X509* certificate, EVP_PKEY* key) {
  if (X509_sign(certificate, key, EVP_sha256()) <= 0) return Failed("sign a certificate");
  return WrittenPem("write a certificate",
                    [&](BIO* bio) { return PEM_write_bio_X509(bio, certificate); });
}

// Returns whether the text has what RFC 3986 lets stand in a URI behind the scheme, which it must
// have.
bool IsUri(std::string_view text) {
  const size_t colon = text.find(':');
  if (text.size() > kMaxUriBytes || colon == 0 || colon == std::string_view::npos) return false;
  constexpr std::string_view kOtherSigns = "-._~:/?#[]@!$&'()*+,;=%";
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           kOtherSigns.find(c) != std::string_view::npos;
  });
}

absl::Status CheckSubject(const Subject& subject) {
  for (const std::string& name : subject.dns_names) {
    if (!base::IsDnsName(name)) {
      return absl::InvalidArgumentError(
          fmt::format("\"{}\" is no DNS name in lower case; a certificate cannot bear it", name));
    }
  }
  for (const std::string& uri : subject.uris) {
    if (!IsUri(uri)) {
      return absl::InvalidArgumentError(
          fmt::format("\"{}\" is no URI; a certificate cannot bear it", uri.substr(0, 256)));
    }
  }
  if (subject.common_name.empty() && subject.dns_names.empty() && subject.addresses.empty()) {
    return absl::InvalidArgumentError("a certificate needs a name");
  }
  if (subject.organization.size() > kMaxCommonNameBytes) {
    return absl::InvalidArgumentError(
        fmt::format("an organization has at most {} bytes", kMaxCommonNameBytes));
  }
  return absl::OkStatus();
}

struct Signer {
  Certificate certificate;
  Key key;
  absl::Time not_after;
};

absl::StatusOr<Signer> OpenAuthority(const Authority& authority, absl::Time at) {
  const auto refuse = [](const absl::Status& status) {
    return absl::FailedPreconditionError(fmt::format("the authority: {}", base::MessageOf(status)));
  };
  const auto facts = ReadCertificate(authority.certificate);
  if (!facts.ok()) return refuse(facts.status());
  if (const absl::Status fits = CheckKeyFits(authority.certificate, authority.key); !fits.ok()) {
    return refuse(fits);
  }
  if (!facts->is_authority) {
    return absl::FailedPreconditionError("the authority's certificate may not sign others");
  }
  if (facts->not_after <= at) {
    return absl::FailedPreconditionError(
        fmt::format("the authority's certificate ended on {}", base::ClockText(facts->not_after)));
  }
  Signer signer{.certificate = nullptr, .key = nullptr, .not_after = facts->not_after};
  ASSIGN_OR_RETURN(signer.certificate, ParseCertificate(authority.certificate));
  ASSIGN_OR_RETURN(signer.key, ParseKey(authority.key));
  return signer;
}

}  // namespace

absl::StatusOr<std::string> MakeAuthorityCertificate(std::string_view key, std::string_view name,
                                                     const Validity& validity) {
  if (name.empty() || name.size() > kMaxCommonNameBytes) {
    return absl::InvalidArgumentError(fmt::format("an authority's name has 1 to {} bytes, not {}",
                                                  kMaxCommonNameBytes, name.size()));
  }
  ASSIGN_OR_RETURN(const Key parsed, ParseKey(key));
  ASSIGN_OR_RETURN(const Certificate certificate, NewCertificate(validity));
  X509* const self = certificate.get();
  RETURN_IF_ERROR(SetName(self, NID_commonName, name));
  if (X509_set_pubkey(self, parsed.get()) != 1 ||
      X509_set_issuer_name(self, X509_get_subject_name(self)) != 1) {
    return Failed("make an authority's certificate");
  }
  RETURN_IF_ERROR(AddExtension(self, self, NID_basic_constraints, "critical,CA:TRUE,pathlen:0"));
  RETURN_IF_ERROR(AddExtension(self, self, NID_key_usage, "critical,keyCertSign,cRLSign"));
  RETURN_IF_ERROR(AddExtension(self, self, NID_subject_key_identifier, "hash"));
  return SignedPem(self, parsed.get());
}

absl::StatusOr<std::string> IssueCertificate(const Authority& authority, const PublicKey& key,
                                             const Subject& subject, const Validity& validity) {
  RETURN_IF_ERROR(CheckSubject(subject));
  ASSIGN_OR_RETURN(const Signer signer, OpenAuthority(authority, validity.not_before));
  const auto* der = reinterpret_cast<const unsigned char*>(key.der.data());
  const auto size = static_cast<long>(key.der.size());  // NOLINT(google-runtime-int): OpenSSL's.
  const Key public_key(d2i_PUBKEY(nullptr, &der, size));
  if (!IsP256(public_key.get())) {
    ERR_clear_error();
    return absl::InvalidArgumentError("not a public key on P-256");
  }
  ASSIGN_OR_RETURN(const Certificate certificate,
                   NewCertificate({.not_before = validity.not_before,
                                   .not_after = std::min(validity.not_after, signer.not_after)}));
  X509* const leaf = certificate.get();
  X509* const issuer = signer.certificate.get();
  if (subject.common_name.size() <= kMaxCommonNameBytes) {
    RETURN_IF_ERROR(SetName(leaf, NID_commonName, subject.common_name));
  }
  RETURN_IF_ERROR(SetName(leaf, NID_organizationName, subject.organization));
  if (X509_set_pubkey(leaf, public_key.get()) != 1 ||
      X509_set_issuer_name(leaf, X509_get_subject_name(issuer)) != 1) {
    return Failed("make a certificate");
  }
  const bool server = subject.purpose == Purpose::kServer;
  RETURN_IF_ERROR(AddExtension(leaf, issuer, NID_basic_constraints, "critical,CA:FALSE"));
  RETURN_IF_ERROR(AddExtension(leaf, issuer, NID_key_usage, "critical,digitalSignature"));
  RETURN_IF_ERROR(
      AddExtension(leaf, issuer, NID_ext_key_usage, server ? "serverAuth" : "clientAuth"));
  RETURN_IF_ERROR(AddExtension(leaf, issuer, NID_subject_key_identifier, "hash"));
  RETURN_IF_ERROR(AddExtension(leaf, issuer, NID_authority_key_identifier, "keyid:always"));
  RETURN_IF_ERROR(AddAlternativeNames(leaf, subject));
  return SignedPem(leaf, signer.key.get());
}

}  // namespace spoke::tls
