#include "ipam-server/enroll/enroll_service.h"

#include "fmt/core.h"
#include "ipam-server/enroll/node_identity.h"
#include "ipam-server/enroll/renewal_decision.h"
#include "lib/base/status.h"
#include "lib/tls/certificate.h"
#include "lib/tls/renewal.h"

namespace spoke::ipam {
namespace {

// A day's work, and no longer: nobody can take such a certificate back.
constexpr absl::Duration kOperatorCertificateLife = absl::Hours(12);
constexpr size_t kMaxLoggedBytes = 253;  // A DNS name's length.

// Returns "ipv4:10.0.0.1:4711" without the port, which is another one each time.
std::string AddressOf(const std::string& peer) {
  const size_t colon = peer.rfind(':');
  return colon == std::string::npos ? peer : peer.substr(0, colon);
}

grpc::Status ToGrpc(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), std::string(base::MessageOf(status))};
}

// The token may be anybody's, so that it says nothing about the pod that it names.
absl::Status NoSuchPod(const absl::Status& status) {
  if (!absl::IsNotFound(status) && !absl::IsInvalidArgument(status)) return status;
  return absl::UnauthenticatedError(
      fmt::format("the pod that the token is bound to is gone: {}", base::MessageOf(status)));
}

}  // namespace

// What vouches for an agent, best first. Only while nobody can be asked about its token, and where
// it has none, its certificate suffices: a token that is no good is an answer.
absl::StatusOr<EnrollService::Asker> EnrollService::Authorize(const v1::EnrollRequest& request) {
  if (request.token().empty()) return AuthorizeByCertificate(request);
  auto by_token = AuthorizeByToken(request);
  const bool unanswered =
      absl::IsUnavailable(by_token.status()) || absl::IsDeadlineExceeded(by_token.status());
  if (!unanswered || request.certificate().empty()) return by_token;
  auto by_certificate = AuthorizeByCertificate(request);
  return by_certificate.ok() ? by_certificate : by_token;
}

absl::StatusOr<EnrollService::Asker> EnrollService::AuthorizeByCertificate(
    const v1::EnrollRequest& request) {
  const std::string& certificate = request.certificate();
  ASSIGN_OR_RETURN(tls::CertificateFacts facts, tls::ReadCertificate(certificate));
  const ShownCertificate shown{
      .dns_names = facts.dns_names,
      .uris = facts.uris,
      .not_before = facts.not_before,
      .not_after = facts.not_after,
      .for_clients = facts.for_clients,
      .is_authority = facts.is_authority,
      .is_ours = tls::CheckSignedBy(certificate, authority_.trusted()).ok(),
      .is_proved =
          tls::CheckRenewalProof(certificate, request.node_name(), request.csr(), request.proof())
              .ok()};
  RETURN_IF_ERROR(CheckRenewal(shown, request.node_name(), edges_.clock.Now()));
  ASSIGN_OR_RETURN(NodeIdentity identity, IdentityIn(facts.uris, request.node_name()));
  // Where the API server answers, what it says of the node counts: not what it said a year ago.
  if (request.token().empty()) {
    if (const auto node = edges_.reviewer.ReadNode(request.node_name()); node.ok()) {
      std::vector<std::string> uris = IdentityUris(*node);
      ASSIGN_OR_RETURN(const NodeIdentity present, IdentityIn(uris, request.node_name()));
      if (!identity.instance.empty() && present.instance != identity.instance) {
        return absl::PermissionDeniedError(fmt::format(
            "node {} is on another machine now than this certificate says: it has to enroll with "
            "its pod's token",
            request.node_name()));
      }
      facts.uris = std::move(uris);
    }
  }
  return Asker{.pod = "",
               .machine = std::move(identity.instance),
               .serial = std::move(facts.serial),
               .uris = std::move(facts.uris)};
}

absl::StatusOr<EnrollService::Asker> EnrollService::AuthorizeByToken(
    const v1::EnrollRequest& request) {
  const EnrollRules& rules = settings_.rules;
  ASSIGN_OR_RETURN(const TokenFacts token, edges_.reviewer.Review(request.token(), rules.audience));
  RETURN_IF_ERROR(CheckToken(token, rules));
  const auto pod = edges_.reviewer.ReadPod(rules.k8s_namespace, token.pod_name);
  if (!pod.ok()) return NoSuchPod(pod.status());
  RETURN_IF_ERROR(CheckPod(token, *pod, request.node_name(), rules));
  ASSIGN_OR_RETURN(const NodeFacts node, edges_.reviewer.ReadNode(request.node_name()));
  return Asker{
      .pod = token.pod_name, .machine = node.provider_id, .serial = "", .uris = IdentityUris(node)};
}

absl::Status EnrollService::Answer(const v1::EnrollRequest& request, v1::EnrollReply& reply) {
  RETURN_IF_ERROR(CheckEnrollRequest(request.node_name(), request.vm_id(), request.token(),
                                     request.certificate()));
  ASSIGN_OR_RETURN(const tls::PublicKey key, tls::ReadSigningRequest(request.csr()));
  ASSIGN_OR_RETURN(const Asker asker, Authorize(request));
  RETURN_IF_ERROR(edges_.revocations.Check({.node = request.node_name(),
                                            .serial = asker.serial,
                                            .machines = {request.vm_id(), asker.machine}}));
  const absl::Time now = edges_.clock.Now();
  {
    absl::MutexLock lock(&mutex_);
    RETURN_IF_ERROR(gate_.Sign(request.node_name(), now));
  }
  ASSIGN_OR_RETURN(const std::string certificate,
                   tls::IssueCertificate(authority_.signing(), key,
                                         {.common_name = request.node_name(),
                                          .dns_names = {request.node_name()},
                                          .addresses = {},
                                          .uris = asker.uris,
                                          .purpose = tls::Purpose::kClient},
                                         {now - kClockSkew, now + settings_.certificate_life}));
  ASSIGN_OR_RETURN(const tls::CertificateFacts facts, tls::ReadCertificate(certificate));
  reply.set_certificate_chain(certificate);
  reply.set_ca(authority_.trusted());
  reply.set_not_after(absl::ToUnixSeconds(facts.not_after));
  edges_.log.Info("node_enrolled", {{"node", request.node_name()},
                                    {"vm", request.vm_id()},
                                    {"pod", asker.pod},
                                    {"by", asker.pod.empty() ? "certificate" : "token"},
                                    {"machine", asker.machine},
                                    {"serial", facts.serial},
                                    {"not_after", absl::FormatTime(facts.not_after)}});
  return absl::OkStatus();
}

absl::Status EnrollService::Answer(const v1::OperatorCertificateRequest& request,
                                   v1::OperatorCertificateReply& reply) {
  RETURN_IF_ERROR(CheckOperatorToken(request.token()));
  ASSIGN_OR_RETURN(const tls::PublicKey key, tls::ReadSigningRequest(request.csr()));
  const OperatorRules& rules = settings_.operators;
  ASSIGN_OR_RETURN(const TokenFacts token, edges_.reviewer.Review(request.token(), rules.audience));
  ASSIGN_OR_RETURN(const Role role, RoleFor(token, rules));
  const absl::Time now = edges_.clock.Now();
  ASSIGN_OR_RETURN(const std::string certificate,
                   tls::IssueCertificate(authority_.signing(), key,
                                         {.common_name = token.user,
                                          .dns_names = {},
                                          .addresses = {},
                                          .organization = std::string(OrganizationOf(role)),
                                          .purpose = tls::Purpose::kClient},
                                         {now - kClockSkew, now + kOperatorCertificateLife}));
  ASSIGN_OR_RETURN(const tls::CertificateFacts facts, tls::ReadCertificate(certificate));
  reply.set_certificate_chain(certificate);
  reply.set_ca(authority_.trusted());
  reply.set_not_after(absl::ToUnixSeconds(facts.not_after));
  reply.set_user(token.user);
  reply.set_role(std::string(NameOf(role)));
  edges_.log.Info("operator_certificate_issued",
                  {{"user", token.user},
                   {"role", NameOf(role)},
                   {"serial", facts.serial},
                   {"not_after", absl::FormatTime(facts.not_after)}});
  return absl::OkStatus();
}

absl::Status EnrollService::Enter(const std::string& peer) {
  if (edges_.margin && edges_.margin() <= absl::ZeroDuration()) {
    return absl::UnavailableError("this server cannot renew its leadership: ask the next one");
  }
  absl::MutexLock lock(&mutex_);
  // A refusal is not logged: a flood would flood the log.
  return gate_.Enter(peer, edges_.clock.Now());
}

void EnrollService::Leave(const std::string& peer) {
  absl::MutexLock lock(&mutex_);
  gate_.Leave(peer);
}

grpc::Status EnrollService::IssueOperatorCertificate(grpc::ServerContext* context,
                                                     const v1::OperatorCertificateRequest* request,
                                                     v1::OperatorCertificateReply* reply) {
  const std::string peer = AddressOf(context->peer());
  if (const absl::Status entered = Enter(peer); !entered.ok()) return ToGrpc(entered);
  const absl::Status status = Answer(*request, *reply);
  Leave(peer);
  if (!status.ok()) {
    edges_.log.Warn("operator_certificate_refused", {{"peer", peer}, {"error", status}});
  }
  return ToGrpc(status);
}

grpc::Status EnrollService::Enroll(grpc::ServerContext* context, const v1::EnrollRequest* request,
                                   v1::EnrollReply* reply) {
  const std::string peer = AddressOf(context->peer());
  if (const absl::Status entered = Enter(peer); !entered.ok()) return ToGrpc(entered);
  const absl::Status status = Answer(*request, *reply);
  Leave(peer);
  if (!status.ok()) {
    // Whoever asks chooses the name, its length too.
    const std::string node = request->node_name().substr(0, kMaxLoggedBytes);
    edges_.log.Warn("enroll_refused", {{"peer", peer}, {"node", node}, {"error", status}});
  }
  return ToGrpc(status);
}

}  // namespace spoke::ipam
