// What operators ask, answered from the loop's state. A query is short on the loop's thread, and
// long lists are taken node by node; a change is answered once it is durable.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "ipam-server/audit/audit_job.h"
#include "ipam-server/authority/cluster_authority.h"
#include "ipam-server/budget/budget_keeper.h"
#include "ipam-server/dns/host_resolver.h"
#include "ipam-server/loop/event_ring.h"
#include "ipam-server/loop/fleet_loop.h"
#include "ipam-server/loop/loop_call.h"
#include "ipam-server/operators/operator_log.h"
#include "ipam-server/revocation/revocations.h"
#include "ipam-server/store/store.h"
#include "ipam-server/traffic/traffic_book.h"
#include "proto/spoke/v1/admin.grpc.pb.h"

namespace spoke::ipam {

// Thread-safe. Errors of every call, beside those that admin.proto lists: DEADLINE_EXCEEDED (the
// loop did not answer in time, or not before the caller's deadline).
//
// admin_service.cc has the calls that look, admin_changes.cc those that change something,
// admin_identity.cc those about certificates, and admin_streams.cc those that go on for a while.
class AdminService final : public v1::AdminService::Service {
 public:
  struct About {
    std::string version;
    std::string store;
    std::string cloud;
    absl::Time started;
  };
  struct Edges {
    FleetLoop& loop;
    Store& store;
    AuditJob& audit;
    EventRing& events;
    const os::Clock& clock;
    const os::Clock& time_of_day;  // By which certificates and revocations end.
    TrafficBook& traffic;
    BudgetKeeper& budgets;
    HostResolver& resolver;
    Revocations& revocations;
    ClusterAuthority* authority;  // nullptr: this server gives out no certificates.
    OperatorLogKeys& operator_log;
  };
  // Borrows the edges. `settings`: those of the loop. `store_path`: the store's file, beside which
  // backups lie on their way to the operator.
  AdminService(ServerSettings settings, About about, std::string store_path, const Edges& edges)
      : settings_(std::move(settings)),
        about_(std::move(about)),
        store_path_(std::move(store_path)),
        loop_(edges.loop),
        store_(edges.store),
        audit_(edges.audit),
        events_(edges.events),
        clock_(edges.clock),
        time_of_day_(edges.time_of_day),
        traffic_(edges.traffic),
        budgets_(edges.budgets),
        resolver_(edges.resolver),
        revocations_(edges.revocations),
        authority_(edges.authority),
        operator_log_(edges.operator_log) {}

  using Context = grpc::ServerContext;
  template <typename T>
  using Writer = grpc::ServerWriter<T>;

  grpc::Status GetStatus(Context* context, const v1::GetStatusRequest* request,
                         v1::GetStatusResponse* response) override;
  grpc::Status ListPools(Context* context, const v1::ListPoolsRequest* request,
                         v1::ListPoolsResponse* response) override;
  grpc::Status ListNodes(Context* context, const v1::ListNodesRequest* request,
                         Writer<v1::ListNodesResponse>* writer) override;
  grpc::Status GetNode(Context* context, const v1::GetNodeRequest* request,
                       v1::GetNodeResponse* response) override;
  grpc::Status ListAddresses(Context* context, const v1::ListAddressesRequest* request,
                             Writer<v1::ListAddressesResponse>* writer) override;
  grpc::Status GetAddress(Context* context, const v1::GetAddressRequest* request,
                          v1::AddressInfo* response) override;
  grpc::Status GetAddressHistory(Context* context, const v1::GetAddressHistoryRequest* request,
                                 v1::GetAddressHistoryResponse* response) override;
  grpc::Status ListReservations(Context* context, const v1::ListReservationsRequest* request,
                                v1::ListReservationsResponse* response) override;
  grpc::Status GetObjects(Context* context, const v1::GetObjectsRequest* request,
                          v1::GetObjectsResponse* response) override;
  grpc::Status GetRollout(Context* context, const v1::GetRolloutRequest* request,
                          v1::GetRolloutResponse* response) override;
  grpc::Status EstimateCuts(Context* context, const v1::ApplyRequest* request,
                            v1::EstimateCutsResponse* response) override;
  grpc::Status Explain(Context* context, const v1::ExplainRequest* request,
                       v1::ExplainResponse* response) override;
  grpc::Status WhatIf(Context* context, const v1::WhatIfRequest* request,
                      v1::WhatIfResponse* response) override;
  grpc::Status GetTop(Context* context, const v1::GetTopRequest* request,
                      v1::GetTopResponse* response) override;

  grpc::Status GetTraffic(Context* context, const v1::GetTrafficRequest* request,
                          v1::GetTrafficResponse* response) override;
  grpc::Status GetBudgets(Context* context, const v1::GetBudgetsRequest* request,
                          v1::GetBudgetsResponse* response) override;

  grpc::Status GetRecovery(Context* context, const v1::GetRecoveryRequest* request,
                           v1::RecoveryInfo* response) override;
  grpc::Status ConfirmRecovery(Context* context, const v1::ConfirmRecoveryRequest* request,
                               v1::RecoveryInfo* response) override;
  grpc::Status Unfreeze(Context* context, const v1::UnfreezeRequest* request,
                        v1::UnfreezeResponse* response) override;
  grpc::Status SetNodeMode(Context* context, const v1::SetNodeModeRequest* request,
                           v1::NodeInfo* response) override;
  grpc::Status RetryNode(Context* context, const v1::RetryNodeRequest* request,
                         v1::NodeInfo* response) override;
  grpc::Status ForgetNode(Context* context, const v1::ForgetNodeRequest* request,
                          v1::ForgetNodeResponse* response) override;
  grpc::Status RevokeIdentity(Context* context, const v1::RevokeIdentityRequest* request,
                              v1::RevokeIdentityResponse* response) override;
  grpc::Status UnrevokeIdentity(Context* context, const v1::UnrevokeIdentityRequest* request,
                                v1::UnrevokeIdentityResponse* response) override;
  grpc::Status ListRevoked(Context* context, const v1::ListRevokedRequest* request,
                           v1::ListRevokedResponse* response) override;
  grpc::Status ListRoots(Context* context, const v1::ListRootsRequest* request,
                         v1::ListRootsResponse* response) override;
  grpc::Status RotateAuthority(Context* context, const v1::RotateAuthorityRequest* request,
                               v1::ListRootsResponse* response) override;
  grpc::Status ReleaseAddress(Context* context, const v1::ReleaseAddressRequest* request,
                              v1::AddressInfo* response) override;
  grpc::Status QuarantineAddress(Context* context, const v1::QuarantineAddressRequest* request,
                                 v1::AddressInfo* response) override;
  grpc::Status CreateReservation(Context* context, const v1::CreateReservationRequest* request,
                                 v1::ReservationInfo* response) override;
  grpc::Status DeleteReservation(Context* context, const v1::DeleteReservationRequest* request,
                                 v1::ReservationInfo* response) override;
  grpc::Status Apply(Context* context, const v1::ApplyRequest* request,
                     v1::ApplyResponse* response) override;
  grpc::Status DeleteObjects(Context* context, const v1::DeleteObjectsRequest* request,
                             v1::DeleteObjectsResponse* response) override;
  grpc::Status ResumeRollout(Context* context, const v1::ResumeRolloutRequest* request,
                             v1::ResumeRolloutResponse* response) override;

  grpc::Status UndoRollout(Context* context, const v1::UndoRolloutRequest* request,
                           v1::ApplyResponse* response) override;
  grpc::Status ListOperatorLog(Context* context, const v1::ListOperatorLogRequest* request,
                               v1::ListOperatorLogResponse* response) override;

  grpc::Status Audit(Context* context, const v1::AuditRequest* request,
                     Writer<v1::AuditResponse>* writer) override;
  grpc::Status VerifyPolicy(Context* context, const v1::VerifyPolicyRequest* request,
                            Writer<v1::VerifyPolicyResponse>* writer) override;
  grpc::Status ListEvents(Context* context, const v1::ListEventsRequest* request,
                          Writer<v1::ListEventsResponse>* writer) override;
  grpc::Status Backup(Context* context, const v1::BackupRequest* request,
                      Writer<v1::BackupResponse>* writer) override;

 private:
  // AskLoop(), VisitNodes() and ChangeInLoop(), with the caller's deadline.
  absl::Status Ask(const Context& context, LoopQuery query);
  // Also records what `summary` says by the time `change` has been made, in the same commit and in
  // the log (operator_change). Errors: also as CallerOf().
  absl::Status Do(const Context& context, ChangeSummary& summary, LoopChange change);
  // Records a call that changes nothing, and does something with what there is. Errors: as Do(),
  // but for kUnavailable and kDeadlineExceeded, which are a warning (operator_record_not_stored).
  absl::Status RecordCall(const Context& context, ChangeSummary& summary);
  // A change that does not go through the loop: its record, to be written in the same commit, and
  // said by LogChange() once that has succeeded.
  struct PreparedRecord {
    v1::OperatorRecord record;
    CompareAndPut put;
  };
  absl::StatusOr<PreparedRecord> PrepareRecord(const Context& context,
                                               const ChangeSummary& summary);
  void LogChange(const v1::OperatorRecord& record);
  absl::StatusOr<DeniedName> ProvedName(const Context& context, const DeniedName& machine);
  absl::Status AskForNodes(const Context& context,
                           const std::function<void(const FleetView&, const NodeRecord&)>& visit);
  absl::Status CollectAddresses(const Context& context, const v1::ListAddressesRequest& request,
                                std::deque<v1::AddressInfo>& rows);
  absl::Status Describe(const Context& context, const ip::Address& address,
                        v1::AddressInfo* response);
  absl::Status Describe(const Context& context, const std::string& node, v1::NodeInfo* response);
  // Judges `plan` against the present state; with `commit`, puts it into force.
  using PlanObjects =
      std::function<absl::StatusOr<ApplyPlan>(const ObjectSet&, const PolicyWorld&)>;
  absl::StatusOr<ApplyPlan> ChangeObjects(const Context& context, std::string_view method,
                                          const PlanObjects& plan, bool commit);
  absl::StatusOr<bool> PutIntoForce(const Context& context, std::string_view method, uint64_t from,
                                    const ApplyPlan& plan);

  const ServerSettings settings_;
  const About about_;
  const std::string store_path_;
  FleetLoop& loop_;
  Store& store_;
  AuditJob& audit_;
  EventRing& events_;
  const os::Clock& clock_;
  const os::Clock& time_of_day_;
  TrafficBook& traffic_;
  BudgetKeeper& budgets_;
  HostResolver& resolver_;
  Revocations& revocations_;
  ClusterAuthority* const authority_;
  OperatorLogKeys& operator_log_;
};

}  // namespace spoke::ipam
