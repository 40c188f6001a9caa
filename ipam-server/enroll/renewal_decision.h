// Whether the certificate that a node has, and the proof that it has its key, suffice for the next
// one. Pure, thread-safe.
//
// That renews a certificate while the cluster's API server cannot be asked, and where there is
// none. What is renewed says what the former one said.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace spoke::ipam {

// What the server has found out about a certificate that it is shown.
struct ShownCertificate {
  std::vector<std::string> dns_names;
  std::vector<std::string> uris;
  absl::Time not_before;
  absl::Time not_after;
  bool for_clients = false;
  bool is_authority = false;
  bool is_ours = false;    // One of the roots that are trusted has signed it.
  bool is_proved = false;  // Its key has signed this request.

  bool operator==(const ShownCertificate&) const = default;
};

// Whether `shown` is renewed for `node_name`: it is ours, and a node's of that name and of no
// other, its key has signed the request, and it ended no longer ago than kRenewalGrace. Whether it
// is revoked is not looked at. Errors: kUnauthenticated (another authority's, not proved, not yet
// good, or ended for too long), kPermissionDenied (another node's, or no node's).
absl::Status CheckRenewal(const ShownCertificate& shown, std::string_view node_name,
                          absl::Time now);

}  // namespace spoke::ipam
