// A gate before the admin service, which refuses clients whose version does not work with ours
// (ADR 20), before anything is done. A client says its version in the metadata `spoke-version`; one
// that says none is let in. GetStatus is answered always, so that `spokectl version` can show both.
#pragma once

#include <string>
#include <utility>

#include "proto/spoke/v1/admin.grpc.pb.h"

namespace spoke::ipam {

// Thread-safe, as the service behind it is. Errors of every call but GetStatus, beside those of the
// service: FAILED_PRECONDITION, with base::CheckSkew()'s text.
class VersionGate final : public v1::AdminService::Service {
 public:
  // Borrows `behind`. `version`: this server's.
  VersionGate(std::string version, v1::AdminService::Service& behind)
      : version_(std::move(version)), behind_(behind) {}

  grpc::Status GetStatus(grpc::ServerContext* context, const v1::GetStatusRequest* request,
                         v1::GetStatusResponse* answer) override {
    return behind_.GetStatus(context, request, answer);
  }
  grpc::Status GetRecovery(grpc::ServerContext* context, const v1::GetRecoveryRequest* request,
                           v1::RecoveryInfo* answer) override {
    return Pass(&Behind::GetRecovery, context, request, answer);
  }
  grpc::Status ConfirmRecovery(grpc::ServerContext* context,
                               const v1::ConfirmRecoveryRequest* request,
                               v1::RecoveryInfo* answer) override {
    return Pass(&Behind::ConfirmRecovery, context, request, answer);
  }
  grpc::Status Unfreeze(grpc::ServerContext* context, const v1::UnfreezeRequest* request,
                        v1::UnfreezeResponse* answer) override {
    return Pass(&Behind::Unfreeze, context, request, answer);
  }
  grpc::Status ListPools(grpc::ServerContext* context, const v1::ListPoolsRequest* request,
                         v1::ListPoolsResponse* answer) override {
    return Pass(&Behind::ListPools, context, request, answer);
  }
  grpc::Status ListNodes(grpc::ServerContext* context, const v1::ListNodesRequest* request,
                         grpc::ServerWriter<v1::ListNodesResponse>* answer) override {
    return Pass(&Behind::ListNodes, context, request, answer);
  }
  grpc::Status GetNode(grpc::ServerContext* context, const v1::GetNodeRequest* request,
                       v1::GetNodeResponse* answer) override {
    return Pass(&Behind::GetNode, context, request, answer);
  }
  grpc::Status SetNodeMode(grpc::ServerContext* context, const v1::SetNodeModeRequest* request,
                           v1::NodeInfo* answer) override {
    return Pass(&Behind::SetNodeMode, context, request, answer);
  }
  grpc::Status RetryNode(grpc::ServerContext* context, const v1::RetryNodeRequest* request,
                         v1::NodeInfo* answer) override {
    return Pass(&Behind::RetryNode, context, request, answer);
  }
  grpc::Status ForgetNode(grpc::ServerContext* context, const v1::ForgetNodeRequest* request,
                          v1::ForgetNodeResponse* answer) override {
    return Pass(&Behind::ForgetNode, context, request, answer);
  }
  grpc::Status RevokeIdentity(grpc::ServerContext* context,
                              const v1::RevokeIdentityRequest* request,
                              v1::RevokeIdentityResponse* answer) override {
    return Pass(&Behind::RevokeIdentity, context, request, answer);
  }
  grpc::Status UnrevokeIdentity(grpc::ServerContext* context,
                                const v1::UnrevokeIdentityRequest* request,
                                v1::UnrevokeIdentityResponse* answer) override {
    return Pass(&Behind::UnrevokeIdentity, context, request, answer);
  }
  grpc::Status ListRevoked(grpc::ServerContext* context, const v1::ListRevokedRequest* request,
                           v1::ListRevokedResponse* answer) override {
    return Pass(&Behind::ListRevoked, context, request, answer);
  }
  grpc::Status ListRoots(grpc::ServerContext* context, const v1::ListRootsRequest* request,
                         v1::ListRootsResponse* answer) override {
    return Pass(&Behind::ListRoots, context, request, answer);
  }
  grpc::Status RotateAuthority(grpc::ServerContext* context,
                               const v1::RotateAuthorityRequest* request,
                               v1::ListRootsResponse* answer) override {
    return Pass(&Behind::RotateAuthority, context, request, answer);
  }
  grpc::Status ListAddresses(grpc::ServerContext* context, const v1::ListAddressesRequest* request,
                             grpc::ServerWriter<v1::ListAddressesResponse>* answer) override {
    return Pass(&Behind::ListAddresses, context, request, answer);
  }
  grpc::Status GetAddress(grpc::ServerContext* context, const v1::GetAddressRequest* request,
                          v1::AddressInfo* answer) override {
    return Pass(&Behind::GetAddress, context, request, answer);
  }
  grpc::Status GetAddressHistory(grpc::ServerContext* context,
                                 const v1::GetAddressHistoryRequest* request,
                                 v1::GetAddressHistoryResponse* answer) override {
    return Pass(&Behind::GetAddressHistory, context, request, answer);
  }
  grpc::Status ReleaseAddress(grpc::ServerContext* context,
                              const v1::ReleaseAddressRequest* request,
                              v1::AddressInfo* answer) override {
    return Pass(&Behind::ReleaseAddress, context, request, answer);
  }
  grpc::Status QuarantineAddress(grpc::ServerContext* context,
                                 const v1::QuarantineAddressRequest* request,
                                 v1::AddressInfo* answer) override {
    return Pass(&Behind::QuarantineAddress, context, request, answer);
  }
  grpc::Status CreateReservation(grpc::ServerContext* context,
                                 const v1::CreateReservationRequest* request,
                                 v1::ReservationInfo* answer) override {
    return Pass(&Behind::CreateReservation, context, request, answer);
  }
  grpc::Status ListReservations(grpc::ServerContext* context,
                                const v1::ListReservationsRequest* request,
                                v1::ListReservationsResponse* answer) override {
    return Pass(&Behind::ListReservations, context, request, answer);
  }
  grpc::Status DeleteReservation(grpc::ServerContext* context,
                                 const v1::DeleteReservationRequest* request,
                                 v1::ReservationInfo* answer) override {
    return Pass(&Behind::DeleteReservation, context, request, answer);
  }
  grpc::Status Apply(grpc::ServerContext* context, const v1::ApplyRequest* request,
                     v1::ApplyResponse* answer) override {
    return Pass(&Behind::Apply, context, request, answer);
  }
  grpc::Status DeleteObjects(grpc::ServerContext* context, const v1::DeleteObjectsRequest* request,
                             v1::DeleteObjectsResponse* answer) override {
    return Pass(&Behind::DeleteObjects, context, request, answer);
  }
  grpc::Status GetObjects(grpc::ServerContext* context, const v1::GetObjectsRequest* request,
                          v1::GetObjectsResponse* answer) override {
    return Pass(&Behind::GetObjects, context, request, answer);
  }
  grpc::Status GetRollout(grpc::ServerContext* context, const v1::GetRolloutRequest* request,
                          v1::GetRolloutResponse* answer) override {
    return Pass(&Behind::GetRollout, context, request, answer);
  }
  grpc::Status ResumeRollout(grpc::ServerContext* context, const v1::ResumeRolloutRequest* request,
                             v1::ResumeRolloutResponse* answer) override {
    return Pass(&Behind::ResumeRollout, context, request, answer);
  }
  grpc::Status EstimateCuts(grpc::ServerContext* context, const v1::ApplyRequest* request,
                            v1::EstimateCutsResponse* answer) override {
    return Pass(&Behind::EstimateCuts, context, request, answer);
  }
  grpc::Status Audit(grpc::ServerContext* context, const v1::AuditRequest* request,
                     grpc::ServerWriter<v1::AuditResponse>* answer) override {
    return Pass(&Behind::Audit, context, request, answer);
  }
  grpc::Status Explain(grpc::ServerContext* context, const v1::ExplainRequest* request,
                       v1::ExplainResponse* answer) override {
    return Pass(&Behind::Explain, context, request, answer);
  }
  grpc::Status WhatIf(grpc::ServerContext* context, const v1::WhatIfRequest* request,
                      v1::WhatIfResponse* answer) override {
    return Pass(&Behind::WhatIf, context, request, answer);
  }
  grpc::Status GetTop(grpc::ServerContext* context, const v1::GetTopRequest* request,
                      v1::GetTopResponse* answer) override {
    return Pass(&Behind::GetTop, context, request, answer);
  }
  grpc::Status GetTraffic(grpc::ServerContext* context, const v1::GetTrafficRequest* request,
                          v1::GetTrafficResponse* answer) override {
    return Pass(&Behind::GetTraffic, context, request, answer);
  }
  grpc::Status GetBudgets(grpc::ServerContext* context, const v1::GetBudgetsRequest* request,
                          v1::GetBudgetsResponse* answer) override {
    return Pass(&Behind::GetBudgets, context, request, answer);
  }
  grpc::Status VerifyPolicy(grpc::ServerContext* context, const v1::VerifyPolicyRequest* request,
                            grpc::ServerWriter<v1::VerifyPolicyResponse>* answer) override {
    return Pass(&Behind::VerifyPolicy, context, request, answer);
  }
  grpc::Status ListEvents(grpc::ServerContext* context, const v1::ListEventsRequest* request,
                          grpc::ServerWriter<v1::ListEventsResponse>* answer) override {
    return Pass(&Behind::ListEvents, context, request, answer);
  }
  grpc::Status Backup(grpc::ServerContext* context, const v1::BackupRequest* request,
                      grpc::ServerWriter<v1::BackupResponse>* answer) override {
    return Pass(&Behind::Backup, context, request, answer);
  }

 private:
  using Behind = v1::AdminService::Service;
  grpc::Status Refusal(const grpc::ServerContext& context) const;

  template <typename Request, typename Answer>
  grpc::Status Pass(grpc::Status (Behind::*method)(grpc::ServerContext*, const Request*, Answer*),
                    grpc::ServerContext* context, const Request* request, Answer* answer) {
    const grpc::Status refusal = Refusal(*context);
    return refusal.ok() ? (behind_.*method)(context, request, answer) : refusal;
  }

  const std::string version_;
  Behind& behind_;
};

}  // namespace spoke::ipam
