// The calls about certificates: who is taken no more, and whose signatures count.
#include <string>

#include "absl/strings/ascii.h"
#include "fmt/core.h"
#include "ipam-server/admin/admin_service.h"
#include "lib/base/status.h"
#include "lib/tls/certificate.h"

namespace spoke::ipam {
namespace {

int64_t MillisOf(absl::Time time) {
  return time == absl::InfiniteFuture() ? 0 : absl::ToUnixMillis(time);
}

v1::RevokedIdentity ToWire(const DeniedName& name, const Denial& denial) {
  v1::RevokedIdentity out;
  out.set_kind(std::string(NameOf(name.kind)));
  out.set_value(name.value);
  out.set_reason(denial.reason);
  out.set_by(denial.by);
  out.set_since_unix_ms(absl::ToUnixMillis(denial.since));
  out.set_until_unix_ms(MillisOf(denial.until));
  return out;
}

absl::Status CheckDenial(const v1::RevokeIdentityRequest& request) {
  if (request.reason().size() > kMaxReasonBytes) {
    return absl::InvalidArgumentError(
        fmt::format("a reason has at most {} bytes", kMaxReasonBytes));
  }
  if (request.ttl_ms() < 0) {
    return absl::InvalidArgumentError("a revocation cannot end in the past");
  }
  return absl::OkStatus();
}

// Whoever runs a server without an authority has another way to renew trust.
absl::StatusOr<ClusterAuthority*> Present(ClusterAuthority* authority) {
  if (authority != nullptr) return authority;
  return absl::FailedPreconditionError(
      "this server gives out no certificates (`tls` in its configuration, not `enroll`): the "
      "authority is what has signed those files");
}

absl::StatusOr<v1::ListRootsResponse> DescribeRoots(const Roots& roots) {
  v1::ListRootsResponse out;
  const Root& signing = SigningRoot(roots);
  for (const Root& root : roots) {
    ASSIGN_OR_RETURN(const tls::CertificateFacts facts, tls::ReadCertificate(root.certificate));
    v1::RootInfo& info = *out.add_roots();
    info.set_name(facts.common_name);
    info.set_serial(facts.serial);
    info.set_state(std::string(NameOf(root.state)));
    info.set_since_unix_ms(absl::ToUnixMillis(root.since));
    info.set_state_ends_unix_ms(MillisOf(EndOfState(root, signing)));
    info.set_not_after_unix_ms(absl::ToUnixMillis(facts.not_after));
    info.set_certificate(root.certificate);
  }
  return out;
}

}  // namespace

// An agent says its VM's id itself, and could say another; the cloud's name of the instance is
// proved. So what is denied is that, where it is known, unless another machine is there by now.
absl::StatusOr<DeniedName> AdminService::ProvedName(const Context& context,
                                                    const DeniedName& machine) {
  std::string instance;
  RETURN_IF_ERROR(Ask(context, [&](const FleetView& view) {
    for (const auto& [key, record] : view.fleet.ledger.nodes()) {
      if (absl::AsciiStrToLower(key.vm_id) == machine.value &&
          HasItsInstance(view.fleet.ledger, record)) {
        instance = record.instance;
      }
    }
  }));
  if (instance.empty()) return machine;
  return DeniedName::From(NameOf(DeniedKind::kMachine), instance);
}

absl::Status AdminService::RevokeIdentity(const Context& context,
                                          const v1::RevokeIdentityRequest& request,
                                          v1::RevokeIdentityResponse& response) {
  ASSIGN_OR_RETURN(DeniedName name, DeniedName::From(request.kind(), request.value()));
  if (name.kind == DeniedKind::kMachine) {
    ASSIGN_OR_RETURN(name, ProvedName(context, name));
  }
  RETURN_IF_ERROR(CheckDenial(request));
  const absl::Time now = edges_.time_of_day.Now();
  ASSIGN_OR_RETURN(
      const auto change,
      PrepareRecord(context, {.method = "RevokeIdentity",
                              .what = fmt::format("{} {} is revoked: {}", NameOf(name.kind),
                                                  name.value, request.reason())}));
  Denial denial{.reason = request.reason(), .by = change.record.who(), .since = now};
  if (request.ttl_ms() > 0) denial.until = now + absl::Milliseconds(request.ttl_ms());
  ASSIGN_OR_RETURN(const auto ended, edges_.revocations.Revoke(name, denial, &change.put));
  LogChange(change.record);
  edges_.events.Info("identity_revoked", {{"kind", std::string(NameOf(name.kind))},
                                          {"value", name.value},
                                          {"by", denial.by},
                                          {"reason", denial.reason},
                                          {"sessions_ended", ended}});
  *response.mutable_identity() = ToWire(name, denial);
  response.set_sessions_ended(ended);
  return absl::OkStatus();
}

absl::Status AdminService::UnrevokeIdentity(const Context& context,
                                            const v1::UnrevokeIdentityRequest& request,
                                            v1::UnrevokeIdentityResponse&) {
  ASSIGN_OR_RETURN(const auto name, DeniedName::From(request.kind(), request.value()));
  ASSIGN_OR_RETURN(const auto change,
                   PrepareRecord(context, {.method = "UnrevokeIdentity",
                                           .what = fmt::format("{} {} is not revoked any more",
                                                               NameOf(name.kind), name.value)}));
  RETURN_IF_ERROR(edges_.revocations.Unrevoke(name, &change.put));
  LogChange(change.record);
  edges_.events.Info("identity_unrevoked", {{"kind", std::string(NameOf(name.kind))},
                                            {"value", name.value},
                                            {"by", change.record.who()}});
  return absl::OkStatus();
}

absl::Status AdminService::ListRevoked(const Context&, const v1::ListRevokedRequest&,
                                       v1::ListRevokedResponse& response) {
  for (const auto& [name, denial] : edges_.revocations.List()) {
    *response.add_identities() = ToWire(name, denial);
  }
  return absl::OkStatus();
}

absl::Status AdminService::ListRoots(const Context&, const v1::ListRootsRequest&,
                                     v1::ListRootsResponse& response) {
  ASSIGN_OR_RETURN(const auto authority, Present(edges_.authority));
  ASSIGN_OR_RETURN(response, DescribeRoots(authority->roots()));
  return absl::OkStatus();
}

absl::Status AdminService::RotateAuthority(const Context& context,
                                           const v1::RotateAuthorityRequest&,
                                           v1::ListRootsResponse& response) {
  ASSIGN_OR_RETURN(const auto authority, Present(edges_.authority));
  ASSIGN_OR_RETURN(const auto change,
                   PrepareRecord(context, {.method = "RotateAuthority",
                                           .what = "the authority's root is being replaced"}));
  RETURN_IF_ERROR(authority->Rotate(edges_.time_of_day.Now(), &change.put));
  LogChange(change.record);
  edges_.events.Info("authority_rotation_begun", {{"by", change.record.who()}});
  ASSIGN_OR_RETURN(response, DescribeRoots(authority->roots()));
  return absl::OkStatus();
}

}  // namespace spoke::ipam
