#include "lib/tls/seal.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <array>
#include <memory>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/tls/message_code.h"
#include "lib/tls/openssl_objects.h"

namespace spoke::tls {
namespace {

// What is sealed is: a byte for the form, the nonce, the tag, the text.
constexpr char kForm = 1;
constexpr size_t kNonceBytes = 12;
constexpr size_t kTagBytes = 16;
constexpr size_t kHeadBytes = 1 + kNonceBytes + kTagBytes;

using Cipher = std::unique_ptr<EVP_CIPHER_CTX, OpensslDeleter<&EVP_CIPHER_CTX_free>>;
using Kdf = std::unique_ptr<EVP_KDF, OpensslDeleter<&EVP_KDF_free>>;
using KdfContext = std::unique_ptr<EVP_KDF_CTX, OpensslDeleter<&EVP_KDF_CTX_free>>;

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* Bytes(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

absl::Status CheckKey(std::string_view key) {
  if (key.size() == kSealKeyBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("a key to seal with has {} bytes, not {}", kSealKeyBytes, key.size()));
}

absl::Status Refuse() {
  ERR_clear_error();
  return absl::UnauthenticatedError(
      "it is sealed under another key or for another purpose, or was changed since");
}

// Runs the cipher over `in`; `out` has room for as much. With `seal` it encrypts.
bool RunCipher(EVP_CIPHER_CTX* cipher, std::string_view context, std::string_view in,
               std::string& out) {
  int done = 0;
  out.resize(in.size());
  return EVP_CipherUpdate(cipher, nullptr, &done, Bytes(context),
                          static_cast<int>(context.size())) == 1 &&
         EVP_CipherUpdate(cipher, Bytes(out), &done, Bytes(in), static_cast<int>(in.size())) == 1;
}

}  // namespace

absl::StatusOr<std::string> DeriveKey(std::string_view secret, std::string_view label) {
  const Kdf kdf(EVP_KDF_fetch(nullptr, "HKDF", nullptr));
  const KdfContext context(kdf == nullptr ? nullptr : EVP_KDF_CTX_new(kdf.get()));
  std::string digest = "SHA256";
  std::string key(secret);
  std::string info(label);
  const std::array<OSSL_PARAM, 4> parameters = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest.data(), 0),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, key.data(), key.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info.data(), info.size()),
      OSSL_PARAM_construct_end()};
  std::string out(kSealKeyBytes, '\0');
  if (context == nullptr ||
      EVP_KDF_derive(context.get(), Bytes(out), out.size(), parameters.data()) != 1) {
    return OpensslError(absl::StatusCode::kInternal, "derive a key");
  }
  return out;
}

absl::StatusOr<std::string> Seal(std::string_view key, std::string_view context,
                                 std::string_view secret) {
  RETURN_IF_ERROR(CheckKey(key));
  ASSIGN_OR_RETURN(const std::string nonce, RandomBytes(kNonceBytes));
  const Cipher cipher(EVP_CIPHER_CTX_new());
  std::string text;
  std::string tag(kTagBytes, '\0');
  int done = 0;
  if (cipher == nullptr ||
      EVP_CipherInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, Bytes(key), Bytes(nonce), 1) !=
          1 ||
      !RunCipher(cipher.get(), context, secret, text) ||
      EVP_CipherFinal_ex(cipher.get(), Bytes(tag), &done) != 1 ||
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_AEAD_GET_TAG, static_cast<int>(kTagBytes),
                          tag.data()) != 1) {
    return OpensslError(absl::StatusCode::kInternal, "seal a secret");
  }
  return std::string(1, kForm) + nonce + tag + text;
}

absl::StatusOr<std::string> Unseal(std::string_view key, std::string_view context,
                                   std::string_view sealed) {
  RETURN_IF_ERROR(CheckKey(key));
  if (sealed.size() < kHeadBytes || sealed.front() != kForm) return Refuse();
  const std::string_view nonce = sealed.substr(1, kNonceBytes);
  std::string tag(sealed.substr(1 + kNonceBytes, kTagBytes));
  const Cipher cipher(EVP_CIPHER_CTX_new());
  std::string secret;
  std::string end(kTagBytes, '\0');
  int done = 0;
  if (cipher == nullptr ||
      EVP_CipherInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, Bytes(key), Bytes(nonce), 0) !=
          1 ||
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_AEAD_SET_TAG, static_cast<int>(kTagBytes),
                          tag.data()) != 1 ||
      !RunCipher(cipher.get(), context, sealed.substr(kHeadBytes), secret) ||
      EVP_CipherFinal_ex(cipher.get(), Bytes(end), &done) != 1) {
    return Refuse();
  }
  return secret;
}

}  // namespace spoke::tls
