// Sealing: keeps a secret where others can read and write, such as in a store. Who has the key can
// read it and sees any change of it; nobody else can. AES-256 in Galois/Counter Mode (NIST SP
// 800-38D), with keys derived by HKDF with SHA-256 (RFC 5869). Thread-safe (no state).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace spoke::tls {

inline constexpr size_t kSealKeyBytes = 32;

// Returns 32 bytes that follow from `secret` and `label`. Keys of two labels say nothing of each
// other. Errors: kInternal.
absl::StatusOr<std::string> DeriveKey(std::string_view secret, std::string_view label);

// Seals `secret` under `key`, of kSealKeyBytes. What is sealed can be opened with the same
// `context` alone, which is not in it: it says what the secret is for, so that one cannot be put in
// another's place. Errors: kInvalidArgument (a key of another length); kInternal (no randomness).
absl::StatusOr<std::string> Seal(std::string_view key, std::string_view context,
                                 std::string_view secret);

// Returns the secret in `sealed`. Errors: kInvalidArgument (a key of another length);
// kUnauthenticated (sealed under another key or for another context, or changed since).
absl::StatusOr<std::string> Unseal(std::string_view key, std::string_view context,
                                   std::string_view sealed);

}  // namespace spoke::tls
