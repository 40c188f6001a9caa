// TLS for our gRPC channels: both sides show a certificate signed by the cluster's own authority.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace grpc {
class AuthContext;
class ChannelCredentials;
class ServerCredentials;
}  // namespace grpc

namespace spoke::rpc {

// The paths of PEM files. There are all three, or `insecure`: never a silent fall-back to plain
// text.
struct TlsFiles {
  std::string ca;
  std::string certificate;
  std::string key;
  bool insecure = false;

  // Errors: kInvalidArgument (some but not all of the files, or files together with insecure).
  absl::Status Validate() const;
};

// Reads the files now. Errors: kNotFound, kPermissionDenied with the path; kInvalidArgument.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> ClientCredentials(const TlsFiles& files);

// Demands and verifies the client's certificate. Errors: as above.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> ServerCredentials(const TlsFiles& files);

// The certificate that a server asks of its clients.
enum class ClientCertificate { kRequired, kNone };

// Does the same for files that are replaced while the server runs: each is read again every `look`,
// of whole seconds, and connections from then on see it; the key and the certificate must fit at
// all times. With kNone clients show no certificate, and `ca` is not read. Errors: as above.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> RenewedServerCredentials(
    const TlsFiles& files, ClientCertificate client, absl::Duration look = absl::Minutes(1));

// Makes credentials for a client that has no certificate yet: verifies the server's by the PEM file
// `ca`. Errors: as above.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> AnonymousCredentials(
    const std::string& ca);

// The names that the peer's verified certificate has. Empty when the peer showed none, or one that
// cannot be read.
struct PeerCertificate {
  // The DNS names of the subject's alternative names, then the common name.
  std::vector<std::string> names;
  std::vector<std::string> uris;  // The URIs of the subject's alternative names.
  std::string serial;             // Its serial number, in hexadecimal digits of lower case.
  std::vector<std::string> organizations;  // The organizations of the subject.
  absl::Time not_after = absl::InfiniteFuture();
};
PeerCertificate PeerCertificateOf(const grpc::AuthContext& context);

// Turns gRPC's code and message into a Status of ours; the numbers are the same by design.
absl::Status FromGrpc(int code, const std::string& message);

}  // namespace spoke::rpc
