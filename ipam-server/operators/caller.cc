#include "ipam-server/operators/caller.h"

#include <grpcpp/security/auth_context.h>
#include <grpcpp/server_context.h>
#include <unistd.h>

#include <string>

#include "fmt/core.h"
#include "lib/base/time_text.h"
#include "lib/rpc/credentials.h"
#include "lib/rpc/peer_name.h"

namespace spoke::ipam {
namespace {

constexpr size_t kMaxNameBytes = 256;

bool IsOfInternet(const std::string& peer) {
  return peer.starts_with("ipv4:") || peer.starts_with("ipv6:");
}

Operator LocalUser() {
  const uid_t own = ::geteuid();
  return {.name = own == 0 ? "uid 0" : fmt::format("uid 0 or {}", own),
          .role = Role::kAdmin,
          .from = "unix socket"};
}

}  // namespace

absl::StatusOr<Operator> CallerOf(const grpc::ServerContextBase& context, absl::Time now) {
  const auto authenticated = context.auth_context();
  if (authenticated == nullptr || !authenticated->IsPeerAuthenticated()) {
    if (!IsOfInternet(context.peer())) return LocalUser();
    return absl::PermissionDeniedError("operators show a certificate here, and you show none");
  }
  const rpc::PeerCertificate peer = rpc::PeerCertificateOf(*authenticated);
  // The common name comes last (rpc::PeerCertificate).
  const std::string name = peer.names.empty() ? "" : peer.names.back().substr(0, kMaxNameBytes);
  if (name.empty()) {
    return absl::UnauthenticatedError(
        "your certificate has no common name, so that nobody could say who did what; get one that "
        "has (CN=)");
  }
  if (peer.not_after <= now) {
    return absl::UnauthenticatedError(
        fmt::format("the certificate of {} ended on {}; get a new one (spokectl login)", name,
                    base::ClockText(peer.not_after)));
  }
  const auto role = RoleOf(peer.organizations);
  if (!role) {
    return absl::PermissionDeniedError(
        fmt::format("the certificate of {} is no operator's: its organization (O=) is none of {}, "
                    "{} and {}",
                    name, OrganizationOf(Role::kViewer), OrganizationOf(Role::kOperator),
                    OrganizationOf(Role::kAdmin)));
  }
  return Operator{.name = name,
                  .role = *role,
                  .from = rpc::ParsePeerName(context.peer()).first.ToString(),
                  .serial = peer.serial};
}

}  // namespace spoke::ipam
