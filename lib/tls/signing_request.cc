#include "lib/tls/signing_request.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/tls/openssl_objects.h"

namespace spoke::tls {
namespace {

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
