// OpenSSL's objects with owners, and its errors as Status. For lib/tls only.
#pragma once

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace spoke::tls {

template <auto Free>
struct OpensslDeleter {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};

using Bio = std::unique_ptr<BIO, OpensslDeleter<&BIO_free_all>>;
using BigNumber = std::unique_ptr<BIGNUM, OpensslDeleter<&BN_free>>;
using Key = std::unique_ptr<EVP_PKEY, OpensslDeleter<&EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, OpensslDeleter<&X509_free>>;
using Request = std::unique_ptr<X509_REQ, OpensslDeleter<&X509_REQ_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, OpensslDeleter<&X509_EXTENSION_free>>;
using Names = std::unique_ptr<GENERAL_NAMES, OpensslDeleter<&GENERAL_NAMES_free>>;
using Name = std::unique_ptr<GENERAL_NAME, OpensslDeleter<&GENERAL_NAME_free>>;
using SubjectName = std::unique_ptr<X509_NAME, OpensslDeleter<&X509_NAME_free>>;
using Asn1Integer = std::unique_ptr<ASN1_INTEGER, OpensslDeleter<&ASN1_INTEGER_free>>;
using Asn1Time = std::unique_ptr<ASN1_TIME, OpensslDeleter<&ASN1_TIME_free>>;

// Returns "<what>: <why>", with what this thread's calls have left in OpenSSL's queue of errors,
// which is empty afterwards.
absl::Status OpensslError(absl::StatusCode code, std::string_view what);

// Returns what `write` puts out. Errors: kInternal.
template <typename Write>
absl::StatusOr<std::string> WrittenPem(std::string_view what, const Write& write) {
  const Bio bio(BIO_new(BIO_s_mem()));
  if (bio == nullptr || write(bio.get()) != 1) {
    return OpensslError(absl::StatusCode::kInternal, what);
  }
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);  // NOLINT(google-runtime-int): OpenSSL's.
  return std::string(data, static_cast<size_t>(size));
}

// Reads `pem`, of at most 1 MiB. Errors: kInvalidArgument.
absl::StatusOr<Key> ParseKey(std::string_view pem);
// Returns the first certificate in `pem`. Errors: kInvalidArgument.
absl::StatusOr<Certificate> ParseCertificate(std::string_view pem);
// Returns the same as it stands there, in DER. Errors: kInvalidArgument.
absl::StatusOr<std::string> CertificateDer(std::string_view pem);

// What stands in certificates, as CertificateFacts has it. Errors: kInvalidArgument.
std::string_view TextOf(const ASN1_STRING* text);
absl::StatusOr<absl::Time> TimeOf(const ASN1_TIME* time);
absl::StatusOr<std::string> SerialOf(const ASN1_INTEGER* serial);
std::vector<std::string> OrganizationsOf(const X509_NAME* subject);

// A callback in place of OpenSSL's own, which asks for a password at the terminal.
int NoPassword(char* buffer, int size, int writing, void* context);

// Returns whether it is one of the only kind that we make and sign: on the curve P-256, by name.
bool IsP256(const EVP_PKEY* key);

}  // namespace spoke::tls
