// Who makes a call of the operators' API, as its connection proves it. Thread-safe (no state).
#pragma once

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ipam-server/operators/role.h"

namespace grpc {
class ServerContextBase;
}  // namespace grpc

namespace spoke::ipam {

// Returns who calls. Over TLS that is whom the certificate names, with the role of its
// organization. Through the unix socket it is root, or the user that the server runs as, and an
// admin: BoundedServer lets nobody else in. A second look gives the same, until the certificate
// ends. Errors: kUnauthenticated (the certificate has ended, though its connection has not, or it
// has no name), kPermissionDenied (a certificate of no role, such as a node's; or no certificate
// and no unix socket).
absl::StatusOr<Operator> CallerOf(const grpc::ServerContextBase& context, absl::Time now);

}  // namespace spoke::ipam
