// A certificate authority of our own: makes its certificate, and signs those of others (X.509 v3 in
// the profile of RFC 5280). Thread-safe (no state); draws serial numbers at random.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/ip/address.h"
#include "lib/tls/certificate.h"

namespace spoke::tls {

// The certificate and the key, both in PEM.
struct Authority {
  std::string certificate;
  std::string key;
};

struct Validity {
  absl::Time not_before;
  absl::Time not_after;  // The end; parts of a second are dropped.
};

// The longest URI, longer than any that we write, and far below what a TLS handshake takes.
inline constexpr size_t kMaxUriBytes = 16U << 10U;

enum class Purpose { kClient, kServer };

// The names that a certificate is for.
struct Subject {
  // The common name, left out where it is empty or above 64 bytes (RFC 5280).
  std::string common_name;
  std::vector<std::string> dns_names;  // The DNS names, each as base::IsDnsName() has it.
  std::vector<ip::Address> addresses;
  // The URIs of RFC 3986, with a scheme; at most kMaxUriBytes each.
  std::vector<std::string> uris = {};
  std::string organization = {};  // At most 64 bytes; empty: none.
  Purpose purpose = Purpose::kClient;
};

// Makes a certificate in PEM that `key` signs itself: it may sign others, which may not. The same
// key makes another certificate of the same authority as long as `name` is the same. Errors:
// kInvalidArgument (`key` is none, or `name` is empty or above 64 bytes), kInternal.
absl::StatusOr<std::string> MakeAuthorityCertificate(std::string_view key, std::string_view name,
                                                     const Validity& validity);

// Makes a certificate in PEM for `key` that says what `subject` does and no more. It ends with
// `authority` at the latest. Errors: kInvalidArgument (a name or URI that is none, no name at all,
// or a key that is none), kFailedPrecondition (`authority` cannot be read, does not fit together,
// is none, or ends before `validity` begins), kInternal.
absl::StatusOr<std::string> IssueCertificate(const Authority& authority, const PublicKey& key,
                                             const Subject& subject, const Validity& validity);

}  // namespace spoke::tls
