// The calls of the admin API, one method each: a connection, a deadline, and errors that say what
// to do. Thread-safe; connects with the first call and again when the connection is lost.
//
// Errors of every method: kUnavailable (no server there, or one that has gone away: the message has
// where it was looked for), kDeadlineExceeded (it did not answer in time; what was asked may have
// happened), kAborted (the server itself says that it cannot now, such as with a full disk), and
// what admin.proto says of the call, with the server's message. Beyond GetStatus(), a server whose
// version does not work with ours answers kFailedPrecondition, and says which to upgrade first.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/rpc/credentials.h"
#include "proto/spoke/v1/admin.pb.h"

namespace spoke::ctl {

// Takes one message of a stream. An error ends the call and becomes its result.
template <typename Message>
using Each = std::function<absl::Status(const Message&)>;

// Where servers are, and what they are shown.
struct Target {
  // Each "host:port", or "unix:/run/spoke/ipam-admin.sock". Of several, the first that lets us in
  // is asked; one that only stands by does not.
  std::vector<std::string> servers;
  rpc::TlsFiles tls;        // Over the network; sockets have no TLS.
  std::string server_name;  // What the server's certificate bears; empty: the host.
};

class Client {
 public:
  // Makes a client. With an error in place of `target`, that is what each call returns. `timeout`
  // is for the answer to a call, and for each further message of a stream.
  Client(absl::StatusOr<Target> target, absl::Duration timeout);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Returns the servers, for people; empty: none is known.
  const std::string& server() const;

  absl::StatusOr<v1::GetStatusResponse> GetStatus() const;
  absl::StatusOr<v1::RecoveryInfo> GetRecovery() const;
  absl::StatusOr<v1::RecoveryInfo> ConfirmRecovery(const v1::ConfirmRecoveryRequest& request) const;
  absl::StatusOr<v1::UnfreezeResponse> Unfreeze() const;
  absl::StatusOr<v1::ListPoolsResponse> ListPools(const v1::ListPoolsRequest& request) const;
  absl::Status ListNodes(const v1::ListNodesRequest& request,
                         const Each<v1::ListNodesResponse>& each) const;
  absl::StatusOr<v1::GetNodeResponse> GetNode(const v1::GetNodeRequest& request) const;
  absl::StatusOr<v1::NodeInfo> SetNodeMode(const v1::SetNodeModeRequest& request) const;
  absl::StatusOr<v1::NodeInfo> RetryNode(const v1::RetryNodeRequest& request) const;
  absl::StatusOr<v1::ForgetNodeResponse> ForgetNode(const v1::ForgetNodeRequest& request) const;
  absl::StatusOr<v1::RevokeIdentityResponse> RevokeIdentity(
      const v1::RevokeIdentityRequest& request) const;
  absl::StatusOr<v1::UnrevokeIdentityResponse> UnrevokeIdentity(
      const v1::UnrevokeIdentityRequest& request) const;
  absl::StatusOr<v1::ListRevokedResponse> ListRevoked() const;
  absl::StatusOr<v1::ListRootsResponse> ListRoots() const;
  absl::StatusOr<v1::ListRootsResponse> RotateAuthority() const;
  absl::Status ListAddresses(const v1::ListAddressesRequest& request,
                             const Each<v1::ListAddressesResponse>& each) const;
  absl::StatusOr<v1::AddressInfo> GetAddress(const v1::GetAddressRequest& request) const;
  absl::StatusOr<v1::GetAddressHistoryResponse> GetAddressHistory(
      const v1::GetAddressHistoryRequest& request) const;
  absl::StatusOr<v1::AddressInfo> ReleaseAddress(const v1::ReleaseAddressRequest& request) const;
  absl::StatusOr<v1::AddressInfo> QuarantineAddress(
      const v1::QuarantineAddressRequest& request) const;
  absl::StatusOr<v1::ReservationInfo> CreateReservation(
      const v1::CreateReservationRequest& request) const;
  absl::StatusOr<v1::ListReservationsResponse> ListReservations() const;
  absl::StatusOr<v1::ReservationInfo> DeleteReservation(
      const v1::DeleteReservationRequest& request) const;
  absl::StatusOr<v1::ApplyResponse> Apply(const v1::ApplyRequest& request) const;
  absl::StatusOr<v1::DeleteObjectsResponse> DeleteObjects(
      const v1::DeleteObjectsRequest& request) const;
  absl::StatusOr<v1::GetObjectsResponse> GetObjects(const v1::GetObjectsRequest& request) const;
  absl::StatusOr<v1::GetRolloutResponse> GetRollout() const;
  absl::StatusOr<v1::ResumeRolloutResponse> ResumeRollout(
      const v1::ResumeRolloutRequest& request) const;
  absl::StatusOr<v1::ApplyResponse> UndoRollout(const v1::UndoRolloutRequest& request) const;
  absl::StatusOr<v1::ListOperatorLogResponse> ListOperatorLog(
      const v1::ListOperatorLogRequest& request) const;
  absl::StatusOr<v1::EstimateCutsResponse> EstimateCuts(const v1::ApplyRequest& request) const;
  absl::Status Audit(const v1::AuditRequest& request, const Each<v1::AuditResponse>& each) const;
  absl::StatusOr<v1::ExplainResponse> Explain(const v1::ExplainRequest& request) const;
  absl::StatusOr<v1::WhatIfResponse> WhatIf(const v1::WhatIfRequest& request) const;
  absl::StatusOr<v1::GetTopResponse> GetTop(const v1::GetTopRequest& request) const;
  absl::StatusOr<v1::GetTrafficResponse> GetTraffic(const v1::GetTrafficRequest& request) const;
  absl::StatusOr<v1::GetBudgetsResponse> GetBudgets(const v1::GetBudgetsRequest& request) const;
  absl::Status VerifyPolicy(const v1::VerifyPolicyRequest& request,
                            const Each<v1::VerifyPolicyResponse>& each) const;
  // Lists events. With follow, further messages may take as long as they like.
  absl::Status ListEvents(const v1::ListEventsRequest& request,
                          const Each<v1::ListEventsResponse>& each) const;
  absl::Status Backup(const Each<v1::BackupResponse>& each) const;

 private:
  struct Calls;  // The part that needs gRPC's headers.

  std::unique_ptr<Calls> calls_;
};

}  // namespace spoke::ctl
