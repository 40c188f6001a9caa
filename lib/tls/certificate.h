// Reads what a certificate says, and whether it goes with a key or an authority; makes private keys
// and the requests to have them signed. Thread-safe (no state).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/ip/address.h"

namespace spoke::tls {

struct CertificateFacts {
  std::string common_name;  // The common name; empty: none.
  std::string serial;       // The serial number, in hexadecimal digits of lower case.
  std::vector<std::string> organizations;  // The organizations of the subject.
  // The DNS names of the subject's alternative names; `uris` are the URIs of these.
  std::vector<std::string> dns_names;
  std::vector<ip::Address> addresses;
  std::vector<std::string> uris;
  absl::Time not_before;
  absl::Time not_after;
  bool is_authority = false;
  bool for_clients = false;  // Whether the extended key usage has clients.
  bool for_servers = false;
};

// Reads the first certificate in `pem`. Errors: kInvalidArgument (none, or times that cannot be
// read).
absl::StatusOr<CertificateFacts> ReadCertificate(std::string_view pem);

// Returns OK when the first certificate is for the public half of `key`, both in PEM. Errors:
// kInvalidArgument (one of them cannot be read), kFailedPrecondition (they do not belong together).
absl::Status CheckKeyFits(std::string_view certificate, std::string_view key);

// Returns OK when the first certificate of `certificate` bears the signature of one of those in
// `authorities`, in PEM; nobody's dates are looked at. Errors: as above.
absl::Status CheckSignedBy(std::string_view certificate, std::string_view authorities);

// Private keys, and what asks an authority to sign them (PKCS #10, RFC 2986). All keys are on the
// curve P-256: small, fast, and known to every TLS library.

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
