#include "ipam-server/enroll/renewal_decision.h"

#include "fmt/format.h"
#include "ipam-server/authority/roots.h"
#include "ipam-server/enroll/node_identity.h"
#include "lib/base/status.h"
#include "lib/base/time_text.h"

namespace spoke::ipam {

absl::Status CheckRenewal(const ShownCertificate& shown, std::string_view node_name,
                          absl::Time now) {
  if (!shown.is_ours) {
    return absl::UnauthenticatedError(
        "the certificate to be renewed is signed by another authority, or by a root that is gone: "
        "enroll with a token");
  }
  if (!shown.is_proved) {
    return absl::UnauthenticatedError(
        "the request is not signed with the key of the certificate to be renewed");
  }
  if (shown.is_authority || !shown.for_clients) {
    return absl::PermissionDeniedError("the certificate to be renewed is no node's");
  }
  if (shown.dns_names.size() != 1 || shown.dns_names.front() != node_name) {
    return absl::PermissionDeniedError(
        fmt::format("the certificate to be renewed is not node {}'s", node_name));
  }
  if (const auto identity = IdentityIn(shown.uris, node_name); !identity.ok()) {
    return absl::PermissionDeniedError(
        fmt::format("the certificate to be renewed: {}", base::MessageOf(identity.status())));
  }
  if (now < shown.not_before) {
    return absl::UnauthenticatedError(
        "the certificate to be renewed is not good yet: compare the clocks of node and server");
  }
  if (now > shown.not_after + kRenewalGrace) {
    return absl::UnauthenticatedError(
        fmt::format("the certificate ended on {}, and is renewed for {} only: enroll with a token",
                    base::ClockText(shown.not_after), absl::FormatDuration(kRenewalGrace)));
  }
  return absl::OkStatus();
}

}  // namespace spoke::ipam
