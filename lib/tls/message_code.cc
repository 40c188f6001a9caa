#include "lib/tls/message_code.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "lib/base/check.h"
#include "lib/tls/openssl_objects.h"

namespace spoke::tls {
namespace {

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

std::string CodeOf(std::string_view key, std::string_view text) {
  unsigned char code[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  CHECK(::HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), Bytes(text), text.size(),
               code, &size) != nullptr,
        "SHA-256 is there");
  return {reinterpret_cast<const char*>(code), size};
}

bool IsCodeOf(std::string_view code, std::string_view key, std::string_view text) {
  const std::string right = CodeOf(key, text);
  return code.size() == right.size() && CRYPTO_memcmp(code.data(), right.data(), right.size()) == 0;
}

absl::StatusOr<std::string> RandomBytes(size_t count) {
  std::string bytes(count, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(count)) != 1) {
    return OpensslError(absl::StatusCode::kInternal, "random numbers");
  }
  return bytes;
}

}  // namespace spoke::tls
