// Reads of a certificate what is said of its holder, and leaves its public key alone: OpenSSL 3
// decodes that with every certificate that it reads, which takes longer than all the rest. For
// those who meet thousands of certificates at once. Thread-safe (no state).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace spoke::tls {

// As in CertificateFacts.
struct CertificateHolder {
  std::string serial;
  std::vector<std::string> organizations;
  absl::Time not_after;

  bool operator==(const CertificateHolder&) const = default;
};

// Reads the first certificate in `pem` (RFC 5280, section 4.1). It must have been verified: what
// stands behind the subject's name is not looked at. Errors: kInvalidArgument (none, or a part of
// it cannot be read).
absl::StatusOr<CertificateHolder> ReadCertificateHolder(std::string_view pem);

}  // namespace spoke::tls
