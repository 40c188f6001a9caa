// The proof that who asks for a certificate's renewal has its key: a signature over what is asked
// for (ECDSA on P-256 with SHA-256). Thread-safe (no state).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace spoke::tls {

// A signature has some 72 bytes.
inline constexpr size_t kMaxProofBytes = 128;

// Proves, with the private key `key` in PEM, that its holder wants `request` signed for `name`.
// Errors: kInvalidArgument (`key` is none), kInternal.
absl::StatusOr<std::string> ProveRenewal(std::string_view key, std::string_view name,
                                         std::string_view request);

// Returns OK when `proof` is by the key of the first certificate in `certificate`. Errors:
// kInvalidArgument (no certificate, or one whose key is not on P-256), kUnauthenticated (another
// key's, or of another name or request).
absl::Status CheckRenewalProof(std::string_view certificate, std::string_view name,
                               std::string_view request, std::string_view proof);

}  // namespace spoke::tls
