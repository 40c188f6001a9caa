// What operators ask, answered from the loop's state. A query is short on the loop's thread, and
// long lists are taken node by node; a change is answered once it is durable.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/sync_stream.h>

#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "ipam-server/admin/node_check.h"
#include "ipam-server/audit/audit_job.h"
#include "ipam-server/authority/cluster_authority.h"
#include "ipam-server/budget/budget_keeper.h"
#include "ipam-server/dns/host_resolver.h"
#include "ipam-server/loop/event_ring.h"
#include "ipam-server/loop/fleet_loop.h"
#include "ipam-server/loop/loop_call.h"
#include "ipam-server/nodes/reachability/reachability_board.h"
#include "ipam-server/operators/operator_log.h"
#include "ipam-server/revocation/revocations.h"
#include "ipam-server/store/store.h"
#include "ipam-server/traffic/traffic_book.h"
#include "proto/spoke/v1/admin.pb.h"

namespace spoke::ipam {

// Thread-safe. Errors of every call, beside those that admin.proto lists: DEADLINE_EXCEEDED (the
// loop did not answer in time, or not before the caller's deadline).
//
// AdminGate serves these calls (admin_gate.h).
//
// admin_service.cc has the calls that look, admin_changes.cc those that change something,
// admin_identity.cc those about certificates, admin_reachability.cc those about the network between
// nodes, and admin_streams.cc those that go on for a while.
class AdminService final {
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
    const ReachabilityBoard& reachability;
  };
  // Borrows the edges. `settings`: those of the loop. `store_path`: the store's file, beside which
  // backups lie on their way to the operator.
  AdminService(ServerSettings settings, About about, std::string store_path, const Edges& edges)
      : settings_(std::move(settings)),
        about_(std::move(about)),
        store_path_(std::move(store_path)),
        edges_(edges) {}

  using Context = grpc::ServerContext;
  template <typename T>
  using Writer = grpc::ServerWriter<T>;

  absl::Status GetStatus(const Context& context, const v1::GetStatusRequest& request,
                         v1::GetStatusResponse& response);
  absl::Status ListPools(const Context& context, const v1::ListPoolsRequest& request,
                         v1::ListPoolsResponse& response);
  absl::Status ListNodes(const Context& context, const v1::ListNodesRequest& request,
                         Writer<v1::ListNodesResponse>& writer);
  absl::Status GetNode(const Context& context, const v1::GetNodeRequest& request,
                       v1::GetNodeResponse& response);
  absl::Status ListAddresses(const Context& context, const v1::ListAddressesRequest& request,
                             Writer<v1::ListAddressesResponse>& writer);
  absl::Status GetAddress(const Context& context, const v1::GetAddressRequest& request,
                          v1::AddressInfo& response);
  absl::Status GetAddressHistory(const Context& context,
                                 const v1::GetAddressHistoryRequest& request,
                                 v1::GetAddressHistoryResponse& response);
  absl::Status ListReservations(const Context& context, const v1::ListReservationsRequest& request,
                                v1::ListReservationsResponse& response);
  absl::Status GetObjects(const Context& context, const v1::GetObjectsRequest& request,
                          v1::GetObjectsResponse& response);
  absl::Status GetRollout(const Context& context, const v1::GetRolloutRequest& request,
                          v1::GetRolloutResponse& response);
  absl::Status EstimateCuts(const Context& context, const v1::ApplyRequest& request,
                            v1::EstimateCutsResponse& response);
  absl::Status Explain(const Context& context, const v1::ExplainRequest& request,
                       v1::ExplainResponse& response);
  absl::Status WhatIf(const Context& context, const v1::WhatIfRequest& request,
                      v1::WhatIfResponse& response);
  absl::Status GetTop(const Context& context, const v1::GetTopRequest& request,
                      v1::GetTopResponse& response);

  absl::Status GetTraffic(const Context& context, const v1::GetTrafficRequest& request,
                          v1::GetTrafficResponse& response);
  absl::Status GetTrafficCourse(const Context& context, const v1::GetTrafficCourseRequest& request,
                                v1::GetTrafficCourseResponse& response);
  absl::Status GetBudgets(const Context& context, const v1::GetBudgetsRequest& request,
                          v1::GetBudgetsResponse& response);

  absl::Status GetRecovery(const Context& context, const v1::GetRecoveryRequest& request,
                           v1::RecoveryInfo& response);
  absl::Status ConfirmRecovery(const Context& context, const v1::ConfirmRecoveryRequest& request,
                               v1::RecoveryInfo& response);
  absl::Status Unfreeze(const Context& context, const v1::UnfreezeRequest& request,
                        v1::UnfreezeResponse& response);
  absl::Status SetNodeMode(const Context& context, const v1::SetNodeModeRequest& request,
                           v1::NodeInfo& response);
  absl::Status RetryNode(const Context& context, const v1::RetryNodeRequest& request,
                         v1::NodeInfo& response);
  absl::Status StartMaintenance(const Context& context, const v1::StartMaintenanceRequest& request,
                                v1::StartMaintenanceResponse& response);
  absl::Status GetNodeData(const Context& context, const v1::GetNodeDataRequest& request,
                           v1::GetNodeDataResponse& response);
  absl::Status ForgetNode(const Context& context, const v1::ForgetNodeRequest& request,
                          v1::ForgetNodeResponse& response);
  absl::Status RevokeIdentity(const Context& context, const v1::RevokeIdentityRequest& request,
                              v1::RevokeIdentityResponse& response);
  absl::Status UnrevokeIdentity(const Context& context, const v1::UnrevokeIdentityRequest& request,
                                v1::UnrevokeIdentityResponse& response);
  absl::Status ListRevoked(const Context& context, const v1::ListRevokedRequest& request,
                           v1::ListRevokedResponse& response);
  absl::Status ListRoots(const Context& context, const v1::ListRootsRequest& request,
                         v1::ListRootsResponse& response);
  absl::Status RotateAuthority(const Context& context, const v1::RotateAuthorityRequest& request,
                               v1::ListRootsResponse& response);
  absl::Status ReleaseAddress(const Context& context, const v1::ReleaseAddressRequest& request,
                              v1::AddressInfo& response);
  absl::Status QuarantineAddress(const Context& context,
                                 const v1::QuarantineAddressRequest& request,
                                 v1::AddressInfo& response);
  absl::Status CreateReservation(const Context& context,
                                 const v1::CreateReservationRequest& request,
                                 v1::ReservationInfo& response);
  absl::Status DeleteReservation(const Context& context,
                                 const v1::DeleteReservationRequest& request,
                                 v1::ReservationInfo& response);
  absl::Status Apply(const Context& context, const v1::ApplyRequest& request,
                     v1::ApplyResponse& response);
  absl::Status DeleteObjects(const Context& context, const v1::DeleteObjectsRequest& request,
                             v1::DeleteObjectsResponse& response);
  absl::Status ResumeRollout(const Context& context, const v1::ResumeRolloutRequest& request,
                             v1::ResumeRolloutResponse& response);

  absl::Status UndoRollout(const Context& context, const v1::UndoRolloutRequest& request,
                           v1::ApplyResponse& response);
  absl::Status ListOperatorLog(const Context& context, const v1::ListOperatorLogRequest& request,
                               v1::ListOperatorLogResponse& response);

  absl::Status Audit(const Context& context, const v1::AuditRequest& request,
                     Writer<v1::AuditResponse>& writer);
  absl::Status VerifyPolicy(const Context& context, const v1::VerifyPolicyRequest& request,
                            Writer<v1::VerifyPolicyResponse>& writer);
  absl::Status GetReachability(const Context& context, const v1::GetReachabilityRequest& request,
                               v1::GetReachabilityResponse& response);
  absl::Status CheckNodes(const Context& context, const v1::CheckNodesRequest& request,
                          Writer<v1::CheckNodesResponse>& writer);
  absl::Status ListEvents(const Context& context, const v1::ListEventsRequest& request,
                          Writer<v1::ListEventsResponse>& writer);
  absl::Status Backup(const Context& context, const v1::BackupRequest& request,
                      Writer<v1::BackupResponse>& writer);

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
  absl::Status CheckFilters(const Context& context, const v1::ListAddressesRequest& request);
  absl::Status CollectAddresses(const Context& context, const v1::ListAddressesRequest& request,
                                std::deque<v1::AddressInfo>& rows);
  absl::Status Describe(const Context& context, const ip::Address& address,
                        v1::AddressInfo& response);
  absl::Status Describe(const Context& context, const std::string& node, v1::NodeInfo& response);
  absl::Status CollectNodes(const Context& context, const v1::CheckNodesRequest& request,
                            CheckedNodes& nodes);
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
  const Edges edges_;
};

}  // namespace spoke::ipam
