#include "lib/tls/openssl_objects.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <time.h>

#include <array>

#include "absl/strings/ascii.h"
#include "fmt/core.h"

namespace spoke::tls {
namespace {

constexpr size_t kMaxPemBytes = 1U << 20U;

absl::StatusOr<Bio> OpenText(std::string_view pem, std::string_view what) {
  if (pem.size() > kMaxPemBytes) {
    return absl::InvalidArgumentError(
        fmt::format("{}: longer than {} bytes of PEM", what, kMaxPemBytes));
  }
  Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  if (bio == nullptr) return OpensslError(absl::StatusCode::kInternal, what);
  return bio;
}

}  // namespace

absl::Status OpensslError(absl::StatusCode code, std::string_view what) {
  std::string why;
  while (const unsigned long error = ERR_get_error()) {  // NOLINT(google-runtime-int): OpenSSL's.
    std::array<char, 256> text{};
    ERR_error_string_n(error, text.data(), text.size());
    if (!why.empty()) why += "; ";
    why += text.data();
  }
  return {code, fmt::format("{}: {}", what, why.empty() ? "OpenSSL does not say why" : why)};
}

int NoPassword(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*context*/) { return -1; }

absl::StatusOr<Key> ParseKey(std::string_view pem) {
  constexpr std::string_view kWhat = "not a private key in PEM without a password";
  auto bio = OpenText(pem, kWhat);
  if (!bio.ok()) return bio.status();
  Key key(PEM_read_bio_PrivateKey(bio->get(), nullptr, &NoPassword, nullptr));
  if (key == nullptr) return OpensslError(absl::StatusCode::kInvalidArgument, kWhat);
  ERR_clear_error();
  return key;
}

absl::StatusOr<Certificate> ParseCertificate(std::string_view pem) {
  constexpr std::string_view kWhat = "not a certificate in PEM";
  auto bio = OpenText(pem, kWhat);
  if (!bio.ok()) return bio.status();
  Certificate certificate(PEM_read_bio_X509(bio->get(), nullptr, &NoPassword, nullptr));
  if (certificate == nullptr) return OpensslError(absl::StatusCode::kInvalidArgument, kWhat);
  ERR_clear_error();
  return certificate;
}

absl::StatusOr<std::string> CertificateDer(std::string_view pem) {
  constexpr std::string_view kWhat = "not a certificate in PEM";
  auto bio = OpenText(pem, kWhat);
  if (!bio.ok()) return bio.status();
  unsigned char* data = nullptr;
  long size = 0;  // NOLINT(google-runtime-int): OpenSSL's.
  if (PEM_bytes_read_bio(&data, &size, nullptr, PEM_STRING_X509, bio->get(), &NoPassword,
                         nullptr) != 1) {
    return OpensslError(absl::StatusCode::kInvalidArgument, kWhat);
  }
  std::string der(reinterpret_cast<const char*>(data), static_cast<size_t>(size));
  OPENSSL_free(data);
  ERR_clear_error();
  return der;
}

std::string_view TextOf(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<size_t>(ASN1_STRING_length(text))};
}

absl::StatusOr<absl::Time> TimeOf(const ASN1_TIME* time) {
  tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) {
    return OpensslError(absl::StatusCode::kInvalidArgument, "a certificate's dates");
  }
  return absl::FromTM(parts, absl::UTCTimeZone());
}

absl::StatusOr<std::string> SerialOf(const ASN1_INTEGER* serial) {
  const BigNumber number(ASN1_INTEGER_to_BN(serial, nullptr));
  char* text = number == nullptr ? nullptr : BN_bn2hex(number.get());
  if (text == nullptr) {
    return OpensslError(absl::StatusCode::kInvalidArgument, "a certificate's serial number");
  }
  std::string out = absl::AsciiStrToLower(text);
  OPENSSL_free(text);
  return out;
}

std::vector<std::string> OrganizationsOf(const X509_NAME* subject) {
  std::vector<std::string> out;
  for (int at = -1;;) {
    at = X509_NAME_get_index_by_NID(subject, NID_organizationName, at);
    if (at < 0) return out;
    out.emplace_back(TextOf(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at))));
  }
}

bool IsP256(const EVP_PKEY* key) {
  if (key == nullptr || EVP_PKEY_is_a(key, "EC") != 1) return false;
  std::array<char, 64> group{};
  size_t size = 0;
  // The group has a name only where the key names it; one that spells its parameters out has none.
  if (EVP_PKEY_get_group_name(key, group.data(), group.size(), &size) != 1) {
    ERR_clear_error();
    return false;
  }
  return std::string_view(group.data(), size) == "prime256v1";
}

}  // namespace spoke::tls
