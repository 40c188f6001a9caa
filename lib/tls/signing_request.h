// Private keys, and what asks an authority to sign them (PKCS #10, RFC 2986). All keys are on the
// curve P-256: small, fast, and known to every TLS library. Thread-safe (no state).
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace spoke::tls {

// A request for a P-256 key has some 500 bytes; this leaves room for names that others put in.
inline constexpr size_t kMaxSigningRequestBytes = 8U << 10U;

// Makes a new private key, PKCS #8 in PEM. Errors: kInternal.
absl::StatusOr<std::string> MakeKey();

// A public key that may be signed: one on P-256, as DER SubjectPublicKeyInfo.
struct PublicKey {
  std::string der;

  bool operator==(const PublicKey&) const = default;
};

// Reads a private key. Errors: kInvalidArgument (no private key in PEM, with a password, or not on
// P-256).
absl::StatusOr<PublicKey> PublicKeyOf(std::string_view key);

// Makes a request in PEM to sign the public half of `key`. It bears `name`, which is for people: an
// authority puts in what it has found out itself. Errors: kInvalidArgument (as above, or `name` is
// empty or longer than 64 bytes), kInternal.
absl::StatusOr<std::string> MakeSigningRequest(std::string_view key, std::string_view name);

// Returns the key that `pem` asks to have signed, once the request has proved that its maker has
// the private half. All else in it is passed over. Errors: kInvalidArgument (too long, not one
// request in PEM and nothing else, not a P-256 key, or a signature that is not its own).
absl::StatusOr<PublicKey> ReadSigningRequest(std::string_view pem);

}  // namespace spoke::tls
