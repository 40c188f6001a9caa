#include "lib/tls/openssl_objects.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <array>

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
