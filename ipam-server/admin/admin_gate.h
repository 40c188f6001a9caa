// A gate before the admin service: who calls has a role that may (operators/role.h), and a version
// that works with ours (ADR 20), or nothing is done. A client says its version in the metadata
// `spoke-version`; one that says none is let in. GetStatus is answered whatever the version, so
// that `spokectl version` can show both.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "ipam-server/operators/role.h"
#include "ipam-server/revocation/revocations.h"
#include "lib/os/clock.h"
#include "lib/telemetry/log.h"
#include "proto/spoke/v1/admin.grpc.pb.h"

namespace spoke::ipam {

// Thread-safe, as the service behind it is. Errors of every call, beside those of the service: as
// CallerOf(), Revocations::Check() of the certificate's serial number, and Authorize();
// FAILED_PRECONDITION, with base::CheckSkew()'s text, except of GetStatus. A refusal for want of a
// role is in the log (operator_refused), once a second at most.
class AdminGate final : public v1::AdminService::Service {
 public:
  // All borrowed. `clock` tells the time of day.
  struct Edges {
    const Revocations& revocations;
    const os::Clock& clock;
    telemetry::Log& log;
  };
  // Borrows `behind` as well. `version`: this server's.
  AdminGate(std::string version, v1::AdminService::Service& behind, const Edges& edges)
      : version_(std::move(version)),
        behind_(behind),
        revocations_(edges.revocations),
        clock_(edges.clock),
        log_(edges.log) {}

  grpc::Status GetStatus(grpc::ServerContext* context, const v1::GetStatusRequest* request,
                         v1::GetStatusResponse* answer) override {
    const grpc::Status refusal = Refusal(*context, {.method = "GetStatus"});
    return refusal.ok() ? behind_.GetStatus(context, request, answer) : refusal;
  }
  grpc::Status GetRecovery(grpc::ServerContext* context, const v1::GetRecoveryRequest* request,
                           v1::RecoveryInfo* answer) override {
    return Pass("GetRecovery", &Behind::GetRecovery, context, request, answer);
  }
  grpc::Status ConfirmRecovery(grpc::ServerContext* context,
                               const v1::ConfirmRecoveryRequest* request,
                               v1::RecoveryInfo* answer) override {
    return Pass("ConfirmRecovery", &Behind::ConfirmRecovery, context, request, answer);
  }
  grpc::Status Unfreeze(grpc::ServerContext* context, const v1::UnfreezeRequest* request,
                        v1::UnfreezeResponse* answer) override {
    return Pass("Unfreeze", &Behind::Unfreeze, context, request, answer);
  }
  grpc::Status ListPools(grpc::ServerContext* context, const v1::ListPoolsRequest* request,
                         v1::ListPoolsResponse* answer) override {
    return Pass("ListPools", &Behind::ListPools, context, request, answer);
  }
  grpc::Status ListNodes(grpc::ServerContext* context, const v1::ListNodesRequest* request,
                         grpc::ServerWriter<v1::ListNodesResponse>* answer) override {
    return Pass("ListNodes", &Behind::ListNodes, context, request, answer);
  }
  grpc::Status GetNode(grpc::ServerContext* context, const v1::GetNodeRequest* request,
                       v1::GetNodeResponse* answer) override {
    return Pass("GetNode", &Behind::GetNode, context, request, answer);
  }
  grpc::Status SetNodeMode(grpc::ServerContext* context, const v1::SetNodeModeRequest* request,
                           v1::NodeInfo* answer) override {
    return Pass("SetNodeMode", &Behind::SetNodeMode, context, request, answer);
  }
  grpc::Status RetryNode(grpc::ServerContext* context, const v1::RetryNodeRequest* request,
                         v1::NodeInfo* answer) override {
    return Pass("RetryNode", &Behind::RetryNode, context, request, answer);
  }
  grpc::Status ForgetNode(grpc::ServerContext* context, const v1::ForgetNodeRequest* request,
                          v1::ForgetNodeResponse* answer) override {
    return Pass("ForgetNode", &Behind::ForgetNode, context, request, answer);
  }
  grpc::Status RevokeIdentity(grpc::ServerContext* context,
                              const v1::RevokeIdentityRequest* request,
                              v1::RevokeIdentityResponse* answer) override {
    return Pass("RevokeIdentity", &Behind::RevokeIdentity, context, request, answer);
  }
  grpc::Status UnrevokeIdentity(grpc::ServerContext* context,
                                const v1::UnrevokeIdentityRequest* request,
                                v1::UnrevokeIdentityResponse* answer) override {
    return Pass("UnrevokeIdentity", &Behind::UnrevokeIdentity, context, request, answer);
  }
  grpc::Status ListRevoked(grpc::ServerContext* context, const v1::ListRevokedRequest* request,
                           v1::ListRevokedResponse* answer) override {
    return Pass("ListRevoked", &Behind::ListRevoked, context, request, answer);
  }
  grpc::Status ListRoots(grpc::ServerContext* context, const v1::ListRootsRequest* request,
                         v1::ListRootsResponse* answer) override {
    return Pass("ListRoots", &Behind::ListRoots, context, request, answer);
  }
  grpc::Status RotateAuthority(grpc::ServerContext* context,
                               const v1::RotateAuthorityRequest* request,
                               v1::ListRootsResponse* answer) override {
    return Pass("RotateAuthority", &Behind::RotateAuthority, context, request, answer);
  }
  grpc::Status ListAddresses(grpc::ServerContext* context, const v1::ListAddressesRequest* request,
                             grpc::ServerWriter<v1::ListAddressesResponse>* answer) override {
    return Pass("ListAddresses", &Behind::ListAddresses, context, request, answer);
  }
  grpc::Status GetAddress(grpc::ServerContext* context, const v1::GetAddressRequest* request,
                          v1::AddressInfo* answer) override {
    return Pass("GetAddress", &Behind::GetAddress, context, request, answer);
  }
  grpc::Status GetAddressHistory(grpc::ServerContext* context,
                                 const v1::GetAddressHistoryRequest* request,
                                 v1::GetAddressHistoryResponse* answer) override {
    return Pass("GetAddressHistory", &Behind::GetAddressHistory, context, request, answer);
  }
  grpc::Status ReleaseAddress(grpc::ServerContext* context,
                              const v1::ReleaseAddressRequest* request,
                              v1::AddressInfo* answer) override {
    return Pass("ReleaseAddress", &Behind::ReleaseAddress, context, request, answer);
  }
  grpc::Status QuarantineAddress(grpc::ServerContext* context,
                                 const v1::QuarantineAddressRequest* request,
                                 v1::AddressInfo* answer) override {
    return Pass("QuarantineAddress", &Behind::QuarantineAddress, context, request, answer);
  }
  grpc::Status CreateReservation(grpc::ServerContext* context,
                                 const v1::CreateReservationRequest* request,
                                 v1::ReservationInfo* answer) override {
    return Pass("CreateReservation", &Behind::CreateReservation, context, request, answer);
  }
  grpc::Status ListReservations(grpc::ServerContext* context,
                                const v1::ListReservationsRequest* request,
                                v1::ListReservationsResponse* answer) override {
    return Pass("ListReservations", &Behind::ListReservations, context, request, answer);
  }
  grpc::Status DeleteReservation(grpc::ServerContext* context,
                                 const v1::DeleteReservationRequest* request,
                                 v1::ReservationInfo* answer) override {
    return Pass("DeleteReservation", &Behind::DeleteReservation, context, request, answer);
  }
  grpc::Status Apply(grpc::ServerContext* context, const v1::ApplyRequest* request,
                     v1::ApplyResponse* answer) override {
    return Pass("Apply", &Behind::Apply, context, request, answer);
  }
  grpc::Status DeleteObjects(grpc::ServerContext* context, const v1::DeleteObjectsRequest* request,
                             v1::DeleteObjectsResponse* answer) override {
    return Pass("DeleteObjects", &Behind::DeleteObjects, context, request, answer);
  }
  grpc::Status GetObjects(grpc::ServerContext* context, const v1::GetObjectsRequest* request,
                          v1::GetObjectsResponse* answer) override {
    return Pass("GetObjects", &Behind::GetObjects, context, request, answer);
  }
  grpc::Status GetRollout(grpc::ServerContext* context, const v1::GetRolloutRequest* request,
                          v1::GetRolloutResponse* answer) override {
    return Pass("GetRollout", &Behind::GetRollout, context, request, answer);
  }
  grpc::Status ResumeRollout(grpc::ServerContext* context, const v1::ResumeRolloutRequest* request,
                             v1::ResumeRolloutResponse* answer) override {
    return Pass("ResumeRollout", &Behind::ResumeRollout, context, request, answer);
  }
  grpc::Status UndoRollout(grpc::ServerContext* context, const v1::UndoRolloutRequest* request,
                           v1::ApplyResponse* answer) override {
    return Pass("UndoRollout", &Behind::UndoRollout, context, request, answer);
  }
  grpc::Status ListOperatorLog(grpc::ServerContext* context,
                               const v1::ListOperatorLogRequest* request,
                               v1::ListOperatorLogResponse* answer) override {
    return Pass("ListOperatorLog", &Behind::ListOperatorLog, context, request, answer);
  }
  grpc::Status EstimateCuts(grpc::ServerContext* context, const v1::ApplyRequest* request,
                            v1::EstimateCutsResponse* answer) override {
    return Pass("EstimateCuts", &Behind::EstimateCuts, context, request, answer);
  }
  grpc::Status Audit(grpc::ServerContext* context, const v1::AuditRequest* request,
                     grpc::ServerWriter<v1::AuditResponse>* answer) override {
    return Pass("Audit", &Behind::Audit, context, request, answer);
  }
  grpc::Status Explain(grpc::ServerContext* context, const v1::ExplainRequest* request,
                       v1::ExplainResponse* answer) override {
    return Pass("Explain", &Behind::Explain, context, request, answer);
  }
  grpc::Status WhatIf(grpc::ServerContext* context, const v1::WhatIfRequest* request,
                      v1::WhatIfResponse* answer) override {
    return Pass("WhatIf", &Behind::WhatIf, context, request, answer);
  }
  grpc::Status GetTop(grpc::ServerContext* context, const v1::GetTopRequest* request,
                      v1::GetTopResponse* answer) override {
    return Pass("GetTop", &Behind::GetTop, context, request, answer);
  }
  grpc::Status GetTraffic(grpc::ServerContext* context, const v1::GetTrafficRequest* request,
                          v1::GetTrafficResponse* answer) override {
    return Pass("GetTraffic", &Behind::GetTraffic, context, request, answer);
  }
  grpc::Status GetBudgets(grpc::ServerContext* context, const v1::GetBudgetsRequest* request,
                          v1::GetBudgetsResponse* answer) override {
    return Pass("GetBudgets", &Behind::GetBudgets, context, request, answer);
  }
  grpc::Status VerifyPolicy(grpc::ServerContext* context, const v1::VerifyPolicyRequest* request,
                            grpc::ServerWriter<v1::VerifyPolicyResponse>* answer) override {
    return Pass("VerifyPolicy", &Behind::VerifyPolicy, context, request, answer);
  }
  grpc::Status ListEvents(grpc::ServerContext* context, const v1::ListEventsRequest* request,
                          grpc::ServerWriter<v1::ListEventsResponse>* answer) override {
    return Pass("ListEvents", &Behind::ListEvents, context, request, answer);
  }
  grpc::Status Backup(grpc::ServerContext* context, const v1::BackupRequest* request,
                      grpc::ServerWriter<v1::BackupResponse>* answer) override {
    return Pass("Backup", &Behind::Backup, context, request, answer);
  }

 private:
  using Behind = v1::AdminService::Service;
  grpc::Status Refusal(const grpc::ServerContext& context, const Asked& asked);
  grpc::Status SkewOf(const grpc::ServerContext& context) const;
  void TellRefused(const grpc::ServerContext& context, const Asked& asked,
                   const absl::Status& refused);

  template <typename Request>
  static Asked Asks(std::string_view method, const Request& request) {
    Asked asked{.method = method};
    if constexpr (requires { request.dry_run(); }) asked.dry_run = request.dry_run();
    if constexpr (requires { request.force(); }) asked.force = request.force();
    return asked;
  }

  template <typename Request, typename Answer>
  grpc::Status Pass(std::string_view name,
                    grpc::Status (Behind::*method)(grpc::ServerContext*, const Request*, Answer*),
                    grpc::ServerContext* context, const Request* request, Answer* answer) {
    grpc::Status refusal = Refusal(*context, Asks(name, *request));
    if (refusal.ok()) refusal = SkewOf(*context);
    return refusal.ok() ? (behind_.*method)(context, request, answer) : refusal;
  }

  const std::string version_;
  Behind& behind_;
  const Revocations& revocations_;
  const os::Clock& clock_;
  telemetry::Log& log_;
  absl::Mutex mutex_;
  absl::Time tell_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  uint64_t untold_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace spoke::ipam
