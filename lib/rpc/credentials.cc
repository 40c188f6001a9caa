#include "lib/rpc/credentials.h"

#include <grpcpp/security/auth_context.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <utility>

#include "lib/base/status.h"
#include "lib/os/file.h"
#include "lib/tls/certificate_holder.h"

namespace spoke::rpc {
namespace {

constexpr size_t kMaxPemBytes = 1U << 20U;

struct Pem {
  std::string ca;
  std::string certificate;
  std::string key;
};

absl::StatusOr<Pem> ReadPem(const TlsFiles& files) {
  Pem pem;
  ASSIGN_OR_RETURN(pem.ca, os::ReadFile(files.ca, kMaxPemBytes));
  ASSIGN_OR_RETURN(pem.certificate, os::ReadFile(files.certificate, kMaxPemBytes));
  ASSIGN_OR_RETURN(pem.key, os::ReadFile(files.key, kMaxPemBytes));
  return pem;
}

}  // namespace

absl::Status TlsFiles::Validate() const {
  const bool any = !ca.empty() || !certificate.empty() || !key.empty();
  const bool all = !ca.empty() && !certificate.empty() && !key.empty();
  if (insecure && any) {
    return absl::InvalidArgumentError(
        "tls: give either the three files or insecure: true, not both");
  }
  if (!insecure && !all) {
    return absl::InvalidArgumentError(
        "tls: needs ca, certificate and key (or insecure: true, for a closed test network only)");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> ClientCredentials(const TlsFiles& files) {
  RETURN_IF_ERROR(files.Validate());
  if (files.insecure) return grpc::InsecureChannelCredentials();
  ASSIGN_OR_RETURN(const Pem pem, ReadPem(files));
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = pem.ca;
  options.pem_cert_chain = pem.certificate;
  options.pem_private_key = pem.key;
  return grpc::SslCredentials(options);
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> ServerCredentials(const TlsFiles& files) {
  RETURN_IF_ERROR(files.Validate());
  if (files.insecure) return grpc::InsecureServerCredentials();
  ASSIGN_OR_RETURN(const Pem pem, ReadPem(files));
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = pem.ca;
  options.pem_key_cert_pairs.push_back({pem.key, pem.certificate});
  return grpc::SslServerCredentials(options);
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> RenewedServerCredentials(
    const TlsFiles& files, ClientCertificate client, absl::Duration look) {
  RETURN_IF_ERROR(files.Validate());
  if (files.insecure) return grpc::InsecureServerCredentials();
  // The watcher itself only logs what it cannot read.
  RETURN_IF_ERROR(ReadPem(files).status());
  const auto seconds = static_cast<unsigned int>(absl::ToInt64Seconds(look));
  const bool verify = client == ClientCertificate::kRequired;
  const auto watcher = std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      files.key, files.certificate, verify ? files.ca : "", seconds);
  grpc::experimental::TlsServerCredentialsOptions options(watcher);
  options.watch_identity_key_cert_pairs();
  if (verify) options.watch_root_certs();
  options.set_cert_request_type(verify ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                                       : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  return grpc::experimental::TlsServerCredentials(options);
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> AnonymousCredentials(
    const std::string& ca) {
  grpc::SslCredentialsOptions options;
  ASSIGN_OR_RETURN(options.pem_root_certs, os::ReadFile(ca, kMaxPemBytes));
  return grpc::SslCredentials(options);
}

PeerCertificate PeerCertificateOf(const grpc::AuthContext& context) {
  const auto take = [&](const char* property, std::vector<std::string>& into) {
    for (const grpc::string_ref& value : context.FindPropertyValues(property)) {
      into.emplace_back(value.data(), value.size());
    }
  };
  PeerCertificate out;
  take(GRPC_PEER_DNS_PROPERTY_NAME, out.names);
  take(GRPC_X509_CN_PROPERTY_NAME, out.names);
  take(GRPC_PEER_URI_PROPERTY_NAME, out.uris);
  std::vector<std::string> pem;
  take(GRPC_X509_PEM_CERT_PROPERTY_NAME, pem);
  if (pem.empty()) return out;
  auto holder = tls::ReadCertificateHolder(pem.front());
  // Who it is cannot be told from a part: it may be revoked, or an operator's.
  if (!holder.ok()) return {};
  out.serial = std::move(holder->serial);
  out.organizations = std::move(holder->organizations);
  out.not_after = holder->not_after;
  return out;
}

absl::Status FromGrpc(int code, const std::string& message) {
  return {static_cast<absl::StatusCode>(code), message};
}

}  // namespace spoke::rpc
