#include "lib/tls/renewal.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/tls/openssl_objects.h"

namespace spoke::tls {
namespace {

using Digest = std::unique_ptr<EVP_MD_CTX, OpensslDeleter<&EVP_MD_CTX_free>>;

// A name has no line's end, so that no two pairs make one text.
std::string TextOf(std::string_view name, std::string_view request) {
  return fmt::format("spoke renewal 1\n{}\n{}", name, request);
}

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

absl::StatusOr<std::string> ProveRenewal(std::string_view key, std::string_view name,
                                         std::string_view request) {
  ASSIGN_OR_RETURN(const Key parsed, ParseKey(key));
  const std::string text = TextOf(name, request);
  const Digest digest(EVP_MD_CTX_new());
  std::string proof(kMaxProofBytes, '\0');
  size_t size = proof.size();
  if (digest == nullptr ||
      EVP_DigestSignInit(digest.get(), nullptr, EVP_sha256(), nullptr, parsed.get()) != 1 ||
      EVP_DigestSign(digest.get(), reinterpret_cast<unsigned char*>(proof.data()), &size,
                     Bytes(text), text.size()) != 1) {
    return OpensslError(absl::StatusCode::kInternal, "sign a renewal");
  }
  proof.resize(size);
  return proof;
}

absl::Status CheckRenewalProof(std::string_view certificate, std::string_view name,
                               std::string_view request, std::string_view proof) {
  ASSIGN_OR_RETURN(const Certificate parsed, ParseCertificate(certificate));
  EVP_PKEY* key = X509_get0_pubkey(parsed.get());
  if (key == nullptr || !IsP256(key)) {
    ERR_clear_error();
    return absl::InvalidArgumentError("the key of a node's certificate must be on P-256");
  }
  const std::string text = TextOf(name, request);
  const Digest digest(EVP_MD_CTX_new());
  const bool right =
      proof.size() <= kMaxProofBytes && digest != nullptr &&
      EVP_DigestVerifyInit(digest.get(), nullptr, EVP_sha256(), nullptr, key) == 1 &&
      EVP_DigestVerify(digest.get(), Bytes(proof), proof.size(), Bytes(text), text.size()) == 1;
  ERR_clear_error();
  if (right) return absl::OkStatus();
  return absl::UnauthenticatedError("the proof is not by the certificate's key");
}

}  // namespace spoke::tls
