// Reads what a certificate says, and whether it goes with a key or an authority. Thread-safe (no
// state).
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

}  // namespace spoke::tls
