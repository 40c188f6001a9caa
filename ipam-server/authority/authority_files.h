// The directory of a server: its own certificates, which it keeps good, and the authority where
// that is not in the store (cluster_authority.h).
//
//   ca.key, ca.pem              the authority; made at the first start and never written again
//   server.key, server.pem      what agents see
//   operator.key, operator.pem  for operators, where they are served; no node can have its name
//   metrics.token               what Prometheus shows to server and agents; the first line is
//   published
//
// All files have mode 0600, in a directory of mode 0700, and are replaced atomically.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ipam-server/authority/roots.h"
#include "lib/tls/authority.h"

namespace spoke::ipam {

inline constexpr absl::Duration kAuthorityLife = absl::Hours(24 * 3650);
inline constexpr absl::Duration kOwnCertificateLife = absl::Hours(24 * 365);
// That of the operators' certificate, which is published: whoever reads it once has it for a day.
inline constexpr absl::Duration kPublishedCertificateLife = absl::Hours(24);
// A colon is in no node's name, so that an operator's certificate is no node's.
inline constexpr const char* kOperatorName = "spoke:operator";

// Makes a new authority, of a random name. Errors: kInternal (no randomness).
absl::StatusOr<tls::Authority> MakeAuthority(absl::Time now);

// The authority in `directory`, which is made, with mode 0700, when it is missing. Without files
// there a new authority is made; one whose certificate was not written any more gets it now.
// Errors: as errno says; kFailedPrecondition (ca.pem without ca.key, or files that are no
// authority: nothing is overwritten, and the text says what an operator can do).
absl::StatusOr<tls::Authority> OpenAuthority(const std::string& directory, absl::Time now);

// A certificate of our own in the directory: NAME.key and NAME.pem.
struct OwnCertificate {
  std::string name;
  tls::Subject subject;
  absl::Duration life = kOwnCertificateLife;
};

// What agents see, with `names` (DNS names or addresses, each one of both); and the operators'.
OwnCertificate ServerCertificate(const std::vector<std::string>& names);
OwnCertificate OperatorCertificate();

// Issues `own` anew unless it is there, fits its key, is `authority`'s, says what it shall, and has
// more than a third of its life before it. True: it was issued. The key stays the same
// as long as it can be read, so that no reader ever finds one that does not fit. Errors: as errno
// says, and as tls::IssueCertificate().
absl::StatusOr<bool> KeepCertificate(const std::string& directory, const OwnCertificate& own,
                                     const tls::Authority& authority, absl::Time now);

// The first line of the directory's metrics.token, which is made, of 32 random bytes, when it is
// missing or empty. `published`, which another server may have made, takes the file's place unless
// it is empty. Errors: as errno says; kInternal (no randomness).
absl::StatusOr<std::string> KeepMetricsToken(const std::string& directory,
                                             const std::string& published);

}  // namespace spoke::ipam
